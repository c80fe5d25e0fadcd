// expect: named(name, x): a text x is a std::string
#include <descent/io/checkpoint.hpp>

void f() { descent::save_file("run", descent::named("note", "after three steps")); }
