// expect: a policy around the update needs 'template <class Real> struct terms', 'terms<double> at(std::int64_t t, double
#include <descent/descent.hpp>
namespace ds = descent;

struct halved {
  using policy_kind = ds::kind::around<halved>;
  template <class Real> struct terms { Real half; };
  DESCENT_HD terms<double> at(std::int64_t, double) const { return {0.5}; }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, halved{}}; }
