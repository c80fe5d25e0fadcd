// expect: states<T...>: one type for all members of the rule's state, or one for each
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::rmsprop{}, ds::states<float, float>{}}; }
