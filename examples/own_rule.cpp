// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Two user-written rules that descent does not have: a sign method with momentum, and normalised descent, which needs
// the norm of each tensor before it can move an element.
#include <descent/descent.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace ds = descent;

// snippet: sign_momentum
/// Momentum on the sign of the gradient:   b <- mu b + sign(g)     p <- p - lr b
struct sign_momentum {
  double lr = 1e-2, momentum = 0.9;

  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real lr, mu; };

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, momentum}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using ds::sign;
    s.b = k.mu * s.b + sign(g);
    return p - k.lr * s.b;
  }
};
static_assert(ds::update_rule<sign_momentum>);
// end

// snippet: normalised
/// Normalised gradient descent:   p <- p - lr g / ||g||     over each tensor
struct normalised {
  double lr = 1e-2;

  template <class Real> struct state {};
  template <class Real> struct terms { Real rate; };
  template <class Real> struct sums { Real gg; };
  static constexpr ds::scope sums_over = ds::scope::tensor;

  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, terms<Real> const&) { return {g * g}; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr}; }
  DESCENT_HD terms<double> at(std::int64_t, sums<double> const& total) const {
    return {total.gg > 0 ? lr / ds::sqrt(total.gg) : 0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return p - k.rate * g;
  }
};
static_assert(ds::update_rule<normalised> && ds::has_sums<normalised>);
// end

// snippet: flat
/// A dead zone:   g <- 0 where |g| < width
struct dead_zone {
  double width = 1e-3;

  template <class Real> struct terms { Real width; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {width}; }

  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const& k) {
    using ds::abs, ds::select;
    return select(abs(g) < k.width, Real(0), g);
  }
};
static_assert(ds::gradient_transform<dead_zone>);
// end

/// Minimises the sum of (p - 1)^2; returns the final distance from the minimum.
template <class Rule> float distance_after(int steps, Rule rule) {
  std::vector<float> p(1000, 3.f), g(1000);
  ds::parameters<float> params;
  params.add("p", p.data(), g.data(), p.size());
  ds::optimizer opt{params, rule};
  for (int i = 0; i < steps; ++i) {
    for (std::size_t j = 0; j < p.size(); ++j) g[j] = 2 * (p[j] - 1);
    opt.step();
  }
  return std::fabs(p[0] - 1);
}

int main() {
  float const first = distance_after(2000, sign_momentum{.lr = 1e-3, .momentum = 0.5});
  float const second = distance_after(1000, normalised{.lr = 0.1});
  std::printf("sign_momentum ends %g from the minimum, normalised %g\n", double(first), double(second));
  return first < 0.01f && second < 0.01f ? 0 : 1;
}
