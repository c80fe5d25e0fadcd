// expect: named(name, x): the elements of x are numbers
#include <descent/io/checkpoint.hpp>

void f(std::vector<std::string> const& names) { descent::save_file("run", descent::named("names", names)); }
