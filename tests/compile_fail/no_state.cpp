// expect: an update rule needs 'template <class Real> struct state', whose members are all of type Real
#include <descent/descent.hpp>
namespace ds = descent;

struct rule {
  double lr = 0.1;
  template <class Real> struct terms { Real lr; };
  terms<double> at(std::int64_t) const { return {lr}; }
  template <class Real> static Real update(Real p, Real g, terms<Real> const& k) { return p - k.lr * g; }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, rule{}}; }
