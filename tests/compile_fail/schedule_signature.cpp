// expect: a schedule must be trivially copyable and have 'double operator()(std::int64_t step) const'
#include <descent/descent.hpp>
namespace ds = descent;

struct decay {
  float operator()(int step) const { return 1.f / float(step); }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, ds::learning_rate(decay{})}; }
