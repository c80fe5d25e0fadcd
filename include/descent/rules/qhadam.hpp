// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// QHAdam: Adam that averages each moment with its newest term (Ma & Yarats 2019). nu1 = nu2 = 1 is Adam. Weight decay
/// is in its L2 form, or `decoupled` as in AdamW.
///
///     g <- g + wd p                                            (decoupled: p <- p - lr wd p instead)
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) g^2
///     p <- p - lr ((1 - nu1) g + nu1 m^) / (sqrt((1 - nu2) g^2 + nu2 v^) + eps)     x^ = x / (1 - b^t)
struct qhadam {
  /// Learning rate lr; nu1 and nu2, the weights of the averages, in [0, 1]; decay rates beta1 of m and beta2 of v, in
  /// [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-3, nu1 = 0.7, nu2 = 1, beta1 = 0.995, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, m_nu, g_nu, v_nu, gg_nu, eps, l2, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  bool uses(std::size_t slot) const { return slot == 0 ? nu1 != 0 : nu2 != 0; }

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const m_unbias = 1 / (1 - power(beta1, t)), v_unbias = 1 / (1 - power(beta2, t));
    return {lr,  beta1, 1 - beta1, beta2, 1 - beta2, nu1 * m_unbias, 1 - nu1, nu2 * v_unbias, 1 - nu2,
            eps, decoupled ? 0 : weight_decay, decoupled ? weight_decay : 0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.l2 * p;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    Real const v = select(k.v_nu > Real(0), k.v_nu * s.v, Real(0));  // s.v may be infinite
    Real const u = (k.g_nu * g + k.m_nu * s.m) / (sqrt(k.gg_nu * g * g + v) + k.eps);
    return p - k.lr * (u + k.wd * p);
  }

  static constexpr field_range<qhadam> ranges[] = {{&qhadam::lr, at_least_0}, {&qhadam::nu1, up_to_1},
                                                   {&qhadam::nu2, up_to_1}, {&qhadam::beta1, below_1},
                                                   {&qhadam::beta2, below_1}, {&qhadam::eps, above_0},
                                                   {&qhadam::weight_decay, at_least_0}};
};
static_assert(update_rule<qhadam>);

}  // namespace descent
