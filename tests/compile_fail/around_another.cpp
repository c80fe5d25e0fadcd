// expect: a policy P around the update names itself: 'using policy_kind = kind::around<P>;'
#include <descent/descent.hpp>
namespace ds = descent;

struct halved {
  using policy_kind = ds::kind::around<ds::adamw>;
  template <class Real> struct terms { Real half; };
  DESCENT_HD terms<double> at(std::int64_t, double) const { return {0.5}; }
  template <class Real> DESCENT_HD static Real around(Real p, Real, Real next, terms<Real> const& k) {
    return k.half * (p + next);
  }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, halved{}}; }
