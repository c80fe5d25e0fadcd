// expect: a rule with memory needs 'terms<double> at(std::int64_t t, memory& old) const', or with sums
#include <descent/descent.hpp>
namespace ds = descent;

struct rule {
  double lr = 0.1;
  template <class Real> struct state {};
  template <class Real> struct terms { Real lr; };
  template <class Real> struct sums { Real gg; };
  struct memory { double gg = 0; };
  static constexpr ds::scope sums_over = ds::scope::model;
  terms<double> at(std::int64_t) const { return {lr}; }
  terms<double> at(std::int64_t, sums<double> const& total) const { return {lr / total.gg}; }
  template <class Real> static sums<Real> sum(Real, Real g, terms<Real> const&) { return {g * g}; }
  template <class Real> static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) { return p - k.lr * g; }
};

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, rule{}}; }
