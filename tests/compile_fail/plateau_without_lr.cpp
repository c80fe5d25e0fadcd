// expect: on_plateau: the rule has no field 'double lr'
#include <descent/descent.hpp>
namespace ds = descent;

struct rule {
  double rate = 0.1;
  template <class Real> struct state {};
  template <class Real> struct terms { Real rate; };
  terms<double> at(std::int64_t) const { return {rate}; }
  template <class Real> static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return p - k.rate * g;
  }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, rule{}, ds::on_plateau{}}; }
