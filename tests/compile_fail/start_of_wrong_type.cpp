// expect: the start of a rule's state is 'template <class Real> state<Real> start(Real p) const'
#include <descent/descent.hpp>
namespace ds = descent;

struct rule {
  double lr = 0.1;
  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real lr; };
  terms<double> at(std::int64_t) const { return {lr}; }
  template <class Real> static Real start(Real p) { return p; }
  template <class Real> static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) { return p - k.lr * g; }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, rule{}}; }
