// expect: named(name, x): x is a part of a run, a number, a std::string, or a container or view of numbers
#include <descent/io/checkpoint.hpp>

struct position { int epoch, batch; };
void f(position const& at) { descent::save_file("run", descent::named("at", at)); }
