// expect: load(f): f(name, elements) returns elements of the type that it is shown; convert on purpose
#include <descent/descent.hpp>

void f(descent::parameters<descent::half> const& params) {
  descent::optimizer opt{params, descent::sgd{}, descent::master<float>{}};
  opt.load([](std::string const&, auto elements) { return std::vector<descent::half>(elements.size()); });
}
