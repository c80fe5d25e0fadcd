// expect: an optimizer begins with a list of parameters: parameters<float> list; list.add(
#include <descent/descent.hpp>
#include <vector>
namespace ds = descent;

void f(std::vector<float>& values) { ds::optimizer opt{values, ds::adamw{}, ds::clip_norm{1.0}}; }
