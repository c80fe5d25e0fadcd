// What the mistakes of this folder look like when they are not made.
#include <descent/descent.hpp>
namespace ds = descent;

struct rule {
  double lr = 0.1;
  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real lr; };
  terms<double> at(std::int64_t) const { return {lr}; }
  template <class Real> static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = s.m + g;
    return p - k.lr * s.m;
  }
};

struct decay {
  double operator()(std::int64_t step) const { return 1 / double(step + 1); }
};

void f(ds::parameters<ds::half> const& params) {
  ds::optimizer opt{params, rule{}, ds::clip_norm{1.0}, ds::skip_nonfinite{}, ds::master<float>{}, ds::states<float>{},
                    ds::learning_rate(decay{}), ds::single{}, ds::host{}};
  opt.master("w");
  opt.state<0>("w");
  ds::optimizer other{params, ds::adamw{.lr = 1e-3, .weight_decay = 0.1},
                      ds::vary<&ds::adamw::weight_decay>(ds::warmup<ds::linear>{}), ds::states<ds::half, float>{}};
  auto moved = std::move(other);
  moved.state<1>("w");
}
