// expect: load_file: a part is const
#include <descent/io/checkpoint.hpp>

void f(std::vector<float> const& x) { descent::load_file("run", descent::named("x", x)); }
