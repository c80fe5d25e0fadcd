// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Adan: adaptive Nesterov momentum (Xie et al. 2022, algorithm 1 with b = 1 - beta), as optax.adan, with additive
/// decay.
///
///     d <- g - old;  old <- g                                    t = 1: d <- 0
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) d
///     n <- b3 n + (1 - b3) (g + c d)^2
///     p <- p - lr ((m^ + c v^) / (sqrt(n^ + eps_root) + eps) + wd p)          x^ = x / (1 - b^t)
///
/// c = 1 - b2, as in optax. With `paper_weight` c = b2, as in the paper and its authors' code.
struct adan {
  /// Learning rate lr; decay rates beta1 of m, beta2 of v and beta3 of n, in [0, 1); eps above 0; eps_root and
  /// weight_decay (wd) at least 0.
  double lr = 1e-3, beta1 = 0.98, beta2 = 0.92, beta3 = 0.99, eps = 1e-8, eps_root = 1e-8, weight_decay = 0;
  bool paper_weight = false;

  template <class Real> struct state { Real m, v, n, old; };
  template <class Real> struct terms {  // a = 1 - b; later = 0 at t = 1, else 1; m^ = m m_gain, c v^ = v v_gain
    Real lr, b1, a1, b2, a2, b3, a3, later, c, m_gain, v_gain, n_gain, eps, eps_root, wd;
  };
  static constexpr char const* slots[] = {"m", "v", "n", "old"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const c = paper_weight ? beta2 : 1 - beta2;
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, beta3, 1 - beta3, t == 1 ? 0.0 : 1.0, c,
            1 / (1 - power(beta1, t)), c / (1 - power(beta2, t)), 1 / (1 - power(beta3, t)), eps, eps_root,
            weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    Real const d = k.later * (g - s.old), u = g + k.c * d;
    s.old = g;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * d;
    s.n = k.b3 * s.n + k.a3 * u * u;
    Real const step = (s.m * k.m_gain + s.v * k.v_gain) / (sqrt(s.n * k.n_gain + k.eps_root) + k.eps);
    return p - k.lr * (step + k.wd * p);
  }

  static constexpr field_range<adan> ranges[] = {{&adan::lr, at_least_0}, {&adan::beta1, below_1},
                                                 {&adan::beta2, below_1}, {&adan::beta3, below_1},
                                                 {&adan::eps, above_0},
                                                 {&adan::eps_root, at_least_0},
                                                 {&adan::weight_decay, at_least_0}};
};
static_assert(update_rule<adan>);

}  // namespace descent
