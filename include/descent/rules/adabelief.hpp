// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// AdaBelief (Zhuang et al. 2020, algorithm 2): steps are long where the gradient is close to its mean. As in
/// optax.adabelief, eps_root is added at every step and stays in s. optax has no decay; the one here is AdamW's.
///
///     m <- b1 m + (1 - b1) g
///     s <- b2 s + (1 - b2) (g - m)^2 + eps_root           with the new m
///     p <- p - lr (m^ / (sqrt(s^) + eps) + wd p)          x^ = x / (1 - b^t)
struct adabelief {
  /// Learning rate lr; decay rates beta1 of m and beta2 of s, in [0, 1); eps above 0; eps_root and weight_decay (wd)
  /// at least 0.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-16, eps_root = 1e-16, weight_decay = 0;

  template <class Real> struct state { Real m, s; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, m_unbias, s_unbias, eps, eps_root, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "s"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, 1 / (1 - power(beta1, t)), 1 / (1 - power(beta2, t)),
            eps, eps_root, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    s.s = k.b2 * s.s + k.a2 * (g - s.m) * (g - s.m) + k.eps_root;
    return p - k.lr * (s.m * k.m_unbias / (sqrt(s.s * k.s_unbias) + k.eps) + k.wd * p);
  }

  static constexpr field_range<adabelief> ranges[] = {{&adabelief::lr, at_least_0},
                                                      {&adabelief::beta1, below_1},
                                                      {&adabelief::beta2, below_1},
                                                      {&adabelief::eps, above_0},
                                                      {&adabelief::eps_root, at_least_0},
                                                      {&adabelief::weight_decay, at_least_0}};
};
static_assert(update_rule<adabelief>);

}  // namespace descent
