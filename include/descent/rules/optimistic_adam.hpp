// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Optimistic Adam (Daskalakis et al. 2018, algorithm 1), as optax.optimistic_adam_v2. The default is Nesterov's form,
/// as in optax; the paper does not have it.
///
///     m   <- b1 m + (1 - b1) g
///     v   <- b2 v + (1 - b2) g^2
///     u   <- m^ / (sqrt(v^) + eps)                        x^ = x / (1 - b^t)
///     p   <- p - lr ((alpha + beta) u - beta old)         t = 1 without full_first_step: p <- p - lr alpha u
///     old <- u
///
/// Nesterov: m^ = b1 m / (1 - b1^(t + 1)) + (1 - b1) g / (1 - b1^t).
struct optimistic_adam {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; the weights alpha of the step
  /// and beta of its change, at least 0.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, alpha = 1, beta = 1;
  bool nesterov = true, full_first_step = false;

  template <class Real> struct state { Real m, v, old; };
  template <class Real> struct terms {  // a = 1 - b; m^ = m_gain m + g_gain g
    Real lr, b1, a1, b2, a2, m_gain, g_gain, v_unbias, eps, gain, beta;
  };
  static constexpr char const* slots[] = {"m", "v", "old"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const unbias = 1 / (1 - power(beta1, t)), gain = t == 1 && !full_first_step ? alpha : alpha + beta;
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, nesterov ? beta1 / (1 - power(beta1, t + 1)) : unbias,
            nesterov ? (1 - beta1) * unbias : 0, 1 / (1 - power(beta2, t)), eps, gain, beta};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    Real const u = (k.m_gain * s.m + k.g_gain * g) / (sqrt(s.v * k.v_unbias) + k.eps);
    Real const step = k.gain * u - k.beta * s.old;
    s.old = u;
    return p - k.lr * step;
  }

  static constexpr field_range<optimistic_adam> ranges[] = {{&optimistic_adam::lr, at_least_0},
                                                            {&optimistic_adam::beta1, below_1},
                                                            {&optimistic_adam::beta2, below_1},
                                                            {&optimistic_adam::eps, above_0},
                                                            {&optimistic_adam::alpha, at_least_0},
                                                            {&optimistic_adam::beta, at_least_0}};
};
static_assert(update_rule<optimistic_adam>);

}  // namespace descent
