// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// User-written rules that descent does not have: normalised descent, which needs the norm of each tensor before it can
// move an element, and Adam with a count of updates for each element. And policies of your own: a pull to slow weights,
// and a cap on the update. test_rule.cpp has a simpler rule, and its test.
#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace ds = descent;

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

// snippet: counted
/// Adam as tiny-cuda-nn has it for grids: it leaves an element whose gradient is 0 alone; n counts the updates of each.
///
///     m <- b1 m + (1 - b1) g     v <- b2 v + (1 - b2) g^2     n <- n + 1
///     p <- p - lr sqrt(1 - b2^n) / (1 - b1^n) / (sqrt(v) + eps) m                   all of it only where g != 0
struct counted_adam {
  double lr = 1e-2, beta1 = 0.9, beta2 = 0.99, eps = 1e-15;

  template <class Real> struct state { Real m, v, n; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, eps; };
  static constexpr char const* slots[] = {"m", "v", "n"};
  static constexpr bool counts(std::size_t slot) { return slot == 2; }  // n is an integer in memory

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, beta1, 1 - beta1, beta2, 1 - beta2, eps}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using ds::pow, ds::select, ds::sqrt;
    Real const one(1), m = k.b1 * s.m + k.a1 * g, v = k.b2 * s.v + k.a2 * g * g, n = s.n + one;
    Real const rate = k.lr * sqrt(one - pow(k.b2, n)) / (one - pow(k.b1, n));
    auto const none = g == Real(0);
    s = {select(none, s.m, m), select(none, s.v, v), select(none, s.n, n)};
    return select(none, p, p - rate / (sqrt(v) + k.eps) * m);
  }
};
static_assert(ds::update_rule<counted_adam>);
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

// snippet: pull
/// Lookahead whose pull is bounded:   s <- s + clamp(alpha (p - s), -most, most),  p <- s          at t = k, 2 k, ...
struct bounded_lookahead {
  int k = 5;
  double alpha = 0.5, most = 1e-2;

  using policy_kind = ds::kind::lookahead;
  template <class Real> struct kept { Real slow; };
  template <class Real> struct terms { Real alpha, most; };

  DESCENT_HD terms<double> at(std::int64_t t) const { return {t % k == 0 ? alpha : 0, most}; }
  template <class Real> DESCENT_HD static bool idle(terms<Real> const& k) { return k.alpha == 0; }

  template <class Real> DESCENT_HD static Real after(Real p, kept<Real>& s, terms<Real> const& k) {
    using ds::max, ds::min;
    return s.slow = s.slow + min(max(k.alpha * (p - s.slow), -k.most), k.most);
  }
};
// end

// snippet: around
/// Caps the root mean square of each tensor's update u, what the rule changes p by:   u <- u min(1, cap lr / RMS(u))
struct capped_update {
  double cap = 1;

  using policy_kind = ds::kind::around<capped_update>;
  template <class Real> struct terms { Real factor; };
  template <class Real> struct sums { Real uu, count; };
  static constexpr ds::scope sums_over = ds::scope::tensor;

  template <class Real> DESCENT_HD static sums<Real> sum(Real p, Real, Real next, terms<Real> const&) {
    return {(next - p) * (next - p), Real(1)};
  }

  DESCENT_HD terms<double> at(std::int64_t, double) const { return {1}; }
  DESCENT_HD terms<double> at(std::int64_t, double lr, sums<double> const& total) const {
    return {total.uu > 0 ? ds::min(1.0, cap * lr / ds::sqrt(total.uu / total.count)) : 1};
  }

  template <class Real> DESCENT_HD static Real around(Real p, Real, Real next, terms<Real> const& k) {
    return p + k.factor * (next - p);
  }
};
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

/// Whether counted_adam does what a loop over elements does, whose count is an integer.
bool counts() {
  std::size_t const size = 1003;
  std::vector<float> p(size, 1.f), g(size), want = p, m(size), v(size);
  std::vector<std::uint32_t> n(size);
  ds::parameters<float> params;
  params.add("grid", p, g);
  ds::optimizer opt{params, counted_adam{}};
  float const lr = 1e-2f, b1 = 0.9f, b2 = 0.99f, a1 = 0.1f, a2 = 0.01f, eps = 1e-15f;
  for (std::size_t t = 1; t <= 300; ++t) {
    for (std::size_t i = 0; i < size; ++i) {
      g[i] = t % (1 + i % 7) == 0 ? float((i * 37 + t * 101) % 257) / 256 - 0.5f : 0.f;
      if (g[i] == 0) continue;
      m[i] = b1 * m[i] + a1 * g[i];
      v[i] = b2 * v[i] + a2 * g[i] * g[i];
      auto const count = float(++n[i]);
      float const rate = lr * std::sqrt(1 - std::pow(b2, count)) / (1 - std::pow(b1, count));
      want[i] -= rate / (std::sqrt(v[i]) + eps) * m[i];
    }
    opt.step();
  }
  return p == want && std::ranges::equal(n, opt.state<2>("grid"));
}

/// Whether bounded_lookahead does what a loop over elements does.
bool pulls() {
  std::vector<float> p(9, 3.f), g(9), want = p, slow = p;
  ds::parameters<float> params;
  params.add("p", p, g);
  ds::optimizer opt{params, ds::sgd{.lr = 0.25}, bounded_lookahead{}};
  for (int t = 1; t <= 50; ++t) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      g[i] = p[i] - float(i);
      want[i] -= 0.25f * g[i];
      if (t % 5 == 0) want[i] = slow[i] += std::clamp(0.5f * (want[i] - slow[i]), -1e-2f, 1e-2f);
    }
    opt.step();
  }
  return p == want && std::ranges::equal(slow, opt.slow("p"));
}

/// Whether capped_update with the gradients 1, 2, ... moves as far as its cap allows, and sgd alone further.
bool caps() {
  std::vector<float> p(9), g(9);
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = float(i + 1);
  ds::parameters<float> params;
  params.add("p", p, g);
  ds::optimizer opt{params, ds::sgd{.lr = 0.5}, capped_update{}};
  opt.step();
  double uu = 0;
  for (float const x : p) uu += double(x) * double(x);
  return std::fabs(std::sqrt(uu / 9) - 0.5) < 1e-6 && std::fabs(p[8] - 9 * p[0]) < 1e-5f;
}

int main() {
  float const end = distance_after(1000, normalised{.lr = 0.1});
  std::printf("normalised ends %g from the minimum\n", double(end));
  bool const same = counts();
  std::printf("counted_adam %s a loop with integer counts\n", same ? "equals" : "differs from");
  bool const bounded = pulls();
  std::printf("bounded_lookahead %s a loop\n", bounded ? "equals" : "differs from");
  bool const capped = caps();
  std::printf("capped_update %s its cap\n", capped ? "moves by" : "misses");
  return end < 0.01f && same && bounded && capped ? 0 : 1;
}
