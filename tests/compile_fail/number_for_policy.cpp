// expect: an argument after the rule is not a policy: a policy names its kind, 'using policy_kind = ...'
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, 1e-3}; }
