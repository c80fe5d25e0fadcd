// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Yogi (Zaheer et al. 2018, algorithm 2): v changes by the size of g^2, not by its distance from g^2. As in
/// optax.yogi, m and v start at `initial`, so that an element moves a little before its first gradient, and both are
/// corrected for bias. Without `bias_correction` x^ = x, as in the paper and ensmallen. optax has no decay; the one
/// here is AdamW's.
///
///     m <- b1 m + (1 - b1) g
///     v <- v - (1 - b2) sign(v - g^2) g^2                 unless v has overflowed
///     p <- p - lr (m^ / (sqrt(v^) + eps) + wd p)          x^ = x / (1 - b^t)
struct yogi {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; initial, the first value of m
  /// and v, in [0, 2^64]; weight_decay (wd) at least 0.
  double lr = 1e-2, beta1 = 0.9, beta2 = 0.999, eps = 1e-3, initial = 1e-6, weight_decay = 0;
  bool bias_correction = true;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, a2, m_unbias, v_unbias, eps, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  template <class Real> DESCENT_HD state<Real> start(Real) const { return {Real(initial), Real(initial)}; }

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const m_unbias = bias_correction ? 1 / (1 - power(beta1, t)) : 1;
    double const v_unbias = bias_correction ? 1 / (1 - power(beta2, t)) : 1;
    return {lr, beta1, 1 - beta1, 1 - beta2, m_unbias, v_unbias, eps, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = select(is_finite(s.v), s.v - k.a2 * sign(s.v - g * g) * (g * g), s.v);
    return p - k.lr * (s.m * k.m_unbias / (sqrt(s.v * k.v_unbias) + k.eps) + k.wd * p);
  }

  static constexpr field_range<yogi> ranges[] = {{&yogi::lr, at_least_0},
                                                 {&yogi::beta1, below_1},
                                                 {&yogi::beta2, below_1},
                                                 {&yogi::eps, above_0},
                                                 {&yogi::initial, interval{0, 0x1p64, "in [0, 2^64]"}},
                                                 {&yogi::weight_decay, at_least_0}};
};
static_assert(update_rule<yogi> && has_start<yogi>);

}  // namespace descent
