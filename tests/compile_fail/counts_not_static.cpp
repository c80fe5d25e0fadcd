// expect: counts in a rule's state are named by 'static constexpr bool counts(std::size_t slot)'
#include <descent/descent.hpp>

struct own {
  double lr = 1;
  template <class Real> struct state { Real n; };
  template <class Real> struct terms { Real lr; };
  bool counts(std::size_t slot) const { return slot == 0; }
  terms<double> at(std::int64_t) const { return {lr}; }
  template <class Real> static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.n = s.n + Real(1);
    return p - k.lr * g;
  }
};

void f(descent::parameters<float> const& params) { descent::optimizer opt{params, own{}}; }
