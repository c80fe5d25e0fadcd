// expect: the rule comes first, after the parameters: optimizer{params, rule, policies...}
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::clip_norm{1.0}, ds::adamw{}}; }
