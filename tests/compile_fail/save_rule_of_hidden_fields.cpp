// expect: save_file(): not all fields of this rule can be read, because it, or a field, is not an aggregate
#include <descent/io/checkpoint.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/sgd.hpp>

struct scaled : descent::sgd { double by = 2; };
void f(descent::optimizer<float, float, scaled>& opt) { descent::save_file("run", opt); }
