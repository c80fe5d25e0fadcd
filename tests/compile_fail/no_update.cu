// expect: an update rule needs 'template <class Real> static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k)'
#include <descent/descent.cuh>
namespace ds = descent;

struct rule {
  double lr = 0.1;
  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real lr; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {lr}; }
};

void f(ds::parameters<float> const& params, cudaStream_t stream) {
  ds::optimizer opt{params, rule{}, ds::cuda{stream}};
}
