// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

#include <limits>

namespace descent {

/// LAMB: layer-wise Adam for large batches (You et al. 2020, algorithm 2, with phi(x) = x). Each tensor is a layer. As
/// in optax.lamb, the ratio is 1 where a norm is 0, and gradients are not clipped first. The paper's code clips their
/// global norm to 1; add clip_norm{1.0} for that.
///
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) g^2
///     u <- m^ / (sqrt(v^ + eps_root) + eps) + wd p        x^ = x / (1 - b^t)
///     p <- p - lr ||p|| / ||u|| u                         norms over the tensor
///
/// The ratio is clamped to [min_ratio, max_ratio]. If both are 1, for example in a group of biases, the step is
/// AdamW's. Other implementations: without `always` the ratio is 1 where there is no decay; without `averaging`
/// m <- b1 m + g; `eps_hat` is as in adam. `correct_rate` uses the raw moments in u and its norm, and
/// lr sqrt(1 - b2^t) / (1 - b1^t) in place of lr, as in DeepSpeed.
struct lamb {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; eps_root and weight_decay (wd)
  /// at least 0; 0 <= min_ratio <= max_ratio, the limits of the ratio.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0, eps_root = 0;
  double min_ratio = 0, max_ratio = std::numeric_limits<double>::infinity();
  bool always = true, averaging = true, eps_hat = false, correct_rate = false;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real rate, b1, a1, b2, a2, m_unbias, v_unbias, root, eps, wd; };  // a = 1 - b
  template <class Real> struct sums { Real pp, uu; };  // squared norms
  static constexpr char const* slots[] = {"m", "v"};
  static constexpr scope sums_over = scope::tensor;

  template <class Real> DESCENT_HD static Real direction(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return s.m * k.m_unbias / (sqrt(s.v * k.v_unbias + k.root) + k.eps) + k.wd * p;
  }

  template <class Real> DESCENT_HD static sums<Real> sum(Real p, Real g, state<Real> s, terms<Real> const& k) {
    Real const u = direction(p, g, s, k);
    return {p * p, u * u};
  }

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const a1 = averaging ? 1 - beta1 : 1;
    double const m_unbias = 1 / (1 - power(beta1, t)), v_unbias = 1 / (1 - power(beta2, t));
    if (correct_rate)
      return {lr * m_unbias / sqrt(v_unbias), beta1, a1, beta2, 1 - beta2, 1, 1, eps_root, eps, weight_decay};
    return {lr, beta1, a1, beta2, 1 - beta2, m_unbias, v_unbias, eps_root, eps_hat ? eps * sqrt(v_unbias) : eps,
            weight_decay};
  }

  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total) const {
    terms<double> k = at(t);
    double const ratio = sqrt(total.pp) / sqrt(total.uu);
    if (total.pp > 0 && total.uu > 0 && (always || weight_decay != 0)) k.rate *= min(max(ratio, min_ratio), max_ratio);
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    return p - k.rate * direction(p, g, s, k);
  }

  static constexpr field_range<lamb> ranges[] = {{&lamb::lr, at_least_0}, {&lamb::beta1, below_1},
                                                 {&lamb::beta2, below_1}, {&lamb::eps, above_0},
                                                 {&lamb::weight_decay, at_least_0},
                                                 {&lamb::eps_root, at_least_0},
                                                 {&lamb::min_ratio, at_least_0},
                                                 {&lamb::max_ratio, at_least_0_or_infinite}};
  void check() const {
    detail::require_flag(!eps_hat || !correct_rate, "lamb", "eps_hat", "off with correct_rate", eps_hat);
    detail::require(max_ratio >= min_ratio, "lamb", "max_ratio", "at least min_ratio", max_ratio);
  }
};
static_assert(update_rule<lamb> && has_sums<lamb>);

}  // namespace descent
