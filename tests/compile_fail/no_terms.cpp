// expect: an update rule needs 'template <class Real> struct terms', whose members are all of type Real
#include <descent/descent.hpp>
namespace ds = descent;

struct rule {
  double lr = 0.1;
  template <class Real> struct state { Real m; };
  template <class Real> static Real update(Real p, Real g, state<Real>&) { return p - g; }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, rule{}}; }
