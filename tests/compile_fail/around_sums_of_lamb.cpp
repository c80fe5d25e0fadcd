// expect: a policy around the update that has sums needs a rule without sums, memory and random normals
#include <descent/descent.hpp>
namespace ds = descent;

struct counted {
  using policy_kind = ds::kind::around<counted>;
  template <class Real> struct terms {};
  template <class Real> struct sums { Real count; };
  static constexpr ds::scope sums_over = ds::scope::tensor;
  DESCENT_HD terms<double> at(std::int64_t, double) const { return {}; }
  DESCENT_HD terms<double> at(std::int64_t, double, sums<double> const&) const { return {}; }
  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real, Real, terms<Real> const&) { return {Real(1)}; }
  template <class Real> DESCENT_HD static Real around(Real, Real, Real next, terms<Real> const&) { return next; }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::lamb{}, counted{}}; }
