// expect: a policy of kind::lookahead needs 'terms<double> at(std::int64_t t) const', 'template <class Real> struct
#include <descent/descent.hpp>
namespace ds = descent;

struct half_way {
  using policy_kind = ds::kind::lookahead;
  template <class Real> struct terms { Real half; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {0.5}; }
  template <class Real> DESCENT_HD static Real after(Real p, Real s, terms<Real> const& k) { return k.half * (p + s); }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, half_way{}}; }
