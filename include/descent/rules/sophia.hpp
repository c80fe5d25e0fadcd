// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Sophia: clipped momentum over the diagonal curvature (Liu et al. 2023, algorithm 3). The rule only reads h. Every k
/// steps, for example 10, the caller estimates the diagonal of the Hessian (Hutchinson or Gauss-Newton-Bartlett),
/// averages it, h <- b2 h + (1 - b2) estimate with b2 = 0.99, and writes h with optimizer::set_state<1>. While h is 0,
/// a step is m / eps, clipped. `bias_correction` is as in optax.
/// Clipping does not remove a NaN in m or h.
///
///     m <- b1 m + (1 - b1) g
///     p <- p - lr (clip(m / max(gamma h, eps), -rho, rho) + wd p)       (bias_correction: m / (1 - b1^t) instead of m)
struct sophia {
  /// Learning rate lr; decay rate beta1 of m, in [0, 1); gamma, the factor of h, and rho, the limit of the step, at
  /// least 0; eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-4, beta1 = 0.96, gamma = 0.01, rho = 1, eps = 1e-12, weight_decay = 0;
  bool bias_correction = false;

  template <class Real> struct state { Real m, h; };
  template <class Real> struct terms { Real lr, b1, a1, m_unbias, gamma, rho, eps, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "h"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {lr, beta1, 1 - beta1, bias_correction ? 1 / (1 - power(beta1, t)) : 1, gamma, rho, eps, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    Real const u = s.m * k.m_unbias / max(k.eps, k.gamma * s.h);
    return p - k.lr * (min(k.rho, max(-k.rho, u)) + k.wd * p);
  }

  static constexpr field_range<sophia> ranges[] = {{&sophia::lr, at_least_0}, {&sophia::beta1, below_1},
                                                   {&sophia::gamma, at_least_0},
                                                   {&sophia::rho, at_least_0}, {&sophia::eps, above_0},
                                                   {&sophia::weight_decay, at_least_0}};
};
static_assert(update_rule<sophia>);

}  // namespace descent
