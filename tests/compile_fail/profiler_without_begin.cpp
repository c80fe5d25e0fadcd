// expect: a policy of kind::profiler needs 'static auto begin(char const* name)'
#include <descent/descent.hpp>
namespace ds = descent;

struct timed {
  using policy_kind = ds::kind::profiler;
  static auto start(char const*) { return 0; }
};

void f(ds::parameters<float> const& params) { ds::optimizer{params, ds::adamw{}, timed{}}.step(); }
