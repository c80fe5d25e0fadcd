// expect: an argument after the rule is not a policy: a policy names its kind, 'using policy_kind = ...'
#include <descent/descent.hpp>
namespace ds = descent;

struct clip_everything { double max = 1; };

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, clip_everything{}}; }
