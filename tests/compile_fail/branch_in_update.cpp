// expect: a rule has no branches, as eight elements are computed at once: use select(condition, a, b)
#include <descent/descent.hpp>

struct uphill {
  double lr = 1e-2;
  template <class Real> struct state {};
  template <class Real> struct terms { Real lr; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {lr}; }
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    if (g > 0) return p + k.lr;
    return p - k.lr;
  }
};

void f(descent::parameters<float> const& params) {
  descent::optimizer opt{params, uphill{}};
  opt.step();
}
