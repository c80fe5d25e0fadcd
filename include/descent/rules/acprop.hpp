// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// ACProp: AdaBelief that divides g by the estimate from before this gradient (Zhuang et al. 2021), with decoupled
/// decay. As optax.contrib.acprop, whose code takes g - m with the old m; its description and the paper take the new m.
///
///     u <- g / (sqrt(v / (1 - b2^(t-1))) + eps)           (v = 0, as at t = 1: g / (1 + eps))
///     v <- b2 v + (1 - b2) (g - m)^2 + eps_root
///     m <- b1 m + (1 - b1) g
///     p <- p - lr (u + wd p)
struct acprop {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps, eps_root and weight_decay (wd) at least
  /// 0.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-16, eps_root = 1e-16, weight_decay = 0;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, v_unbias, eps, eps_root, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, t == 1 ? 1 : 1 / (1 - power(beta2, t - 1)),
            eps, eps_root, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    Real const v = select(s.v <= Real(0), Real(1), s.v * k.v_unbias);
    Real const u = g / (sqrt(v) + k.eps), d = g - s.m;
    s.v = k.b2 * s.v + k.a2 * d * d + k.eps_root;
    s.m = k.b1 * s.m + k.a1 * g;
    return p - k.lr * (u + k.wd * p);
  }

  static constexpr field_range<acprop> ranges[] = {{&acprop::lr, at_least_0}, {&acprop::beta1, below_1},
                                                   {&acprop::beta2, below_1},
                                                   {&acprop::eps, at_least_0},
                                                   {&acprop::eps_root, at_least_0},
                                                   {&acprop::weight_decay, at_least_0}};
};
static_assert(update_rule<acprop>);

}  // namespace descent
