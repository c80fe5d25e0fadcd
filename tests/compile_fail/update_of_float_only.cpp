// expect: an update rule needs 'template <class Real> static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k)'
#include <descent/descent.hpp>
namespace ds = descent;

struct rule {
  double lr = 0.1;
  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real lr; };
  terms<double> at(std::int64_t) const { return {lr}; }
  static float update(float p, float g, state<float>&, terms<float> const& k) { return p - k.lr * g; }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, rule{}}; }
