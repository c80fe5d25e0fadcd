// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// LaProp (Ziyin et al. 2020, algorithm 1): Adam that divides each gradient before it averages. m keeps lr out, as in
/// the paper; in the authors' code a changed lr applies to new gradients only. The decay is lr wd p, as in adamw; the
/// authors' is wd p.
///
///     v <- b2 v + (1 - b2) g^2
///     m <- b1 m + (1 - b1) g / (sqrt(v^) + eps)           x^ = x / (1 - b^t)
///     p <- p - lr (m^ + wd p)
struct laprop {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 4e-4, beta1 = 0.9, beta2 = 0.999, eps = 1e-15, weight_decay = 0;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, m_unbias, v_unbias, eps, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, 1 / (1 - power(beta1, t)), 1 / (1 - power(beta2, t)),
            eps, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.v = k.b2 * s.v + k.a2 * g * g;
    s.m = k.b1 * s.m + k.a1 * (g / (sqrt(s.v * k.v_unbias) + k.eps));
    return p - k.lr * (s.m * k.m_unbias + k.wd * p);
  }

  static constexpr field_range<laprop> ranges[] = {{&laprop::lr, at_least_0}, {&laprop::beta1, below_1},
                                                   {&laprop::beta2, below_1}, {&laprop::eps, above_0},
                                                   {&laprop::weight_decay, at_least_0}};
};
static_assert(update_rule<laprop>);

}  // namespace descent
