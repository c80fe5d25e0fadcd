// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// COCOB-Backprop: each element bets on the sign of its next gradient, and no learning rate is needed (Orabona &
/// Tommasi 2017, algorithm 2). As in optax.contrib.cocob, lr multiplies the gradients. The bets do not depend on their
/// scale, so a constant lr changes only the weight of eps; a schedule gives some gradients more weight than others.
///
///     g <- lr (g + wd p)
///     L <- max(L, |g|)                                    L = eps before the first step
///     G <- G + |g|
///     R <- max(R - g (p - p0), 0)
///     C <- C - g
///     p <- p0 + C / (L max(G + L, alpha L)) (L + R)
struct cocob {
  /// lr, the factor of the gradients, and alpha, which limits the first bets, at least 0; eps above 0; weight_decay
  /// (wd) at least 0.
  double lr = 1, alpha = 100, eps = 1e-8, weight_decay = 0;

  template <class Real> struct state { Real L, G, R, C, p0; };
  template <class Real> struct terms { Real lr, alpha, eps, wd; };
  static constexpr char const* slots[] = {"L", "G", "R", "C", "p0"};
  static constexpr bool step_needs_p = true;

  template <class Real> DESCENT_HD static state<Real> start(Real p) { return {Real(0), Real(0), Real(0), Real(0), p}; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, alpha, eps, weight_decay}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = k.lr * (g + k.wd * p);
    s.L = max(s.L, abs(g));
    s.G = s.G + abs(g);
    s.R = max(s.R - g * (p - s.p0), Real(0));
    s.C = s.C - g;
    Real const L = max(s.L, k.eps);
    return s.p0 + s.C / max(s.G + L, k.alpha * L) * (Real(1) + s.R / L);
  }

  static constexpr field_range<cocob> ranges[] = {{&cocob::lr, at_least_0}, {&cocob::alpha, at_least_0},
                                                  {&cocob::eps, above_0},
                                                  {&cocob::weight_decay, at_least_0}};
};
static_assert(update_rule<cocob> && has_start<cocob>);

}  // namespace descent
