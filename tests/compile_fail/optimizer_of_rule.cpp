// expect: an optimizer begins with a list of parameters: parameters<float> list; list.add(
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) { ds::optimizer opt{ds::adamw{}, params}; }
