// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// ADOPT: Adam that divides by v from before this gradient, and averages after the division (Taniguchi et al. 2024,
/// algorithm 2; without `clip`, the paper's first version). As in optax.contrib.adopt, the first step only sets v and
/// moves nothing. optax has no decay; the one here is AdamW's, from the second step on.
///
///     u <- g / max(sqrt(v), eps), clipped to +-(t - 1)^(1/4)     with the old v
///     v <- b2 v + (1 - b2) g^2                                   t = 1: v <- g^2
///     m <- b1 m + (1 - b1) u                                     t = 1: m stays 0
///     p <- p - lr (m + wd p)                                     t = 1: p stays
struct adopt {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.9999, eps = 1e-6, weight_decay = 0;
  bool clip = true;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, eps, clip, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD static constexpr bool unbounded(std::size_t term) { return term == 6; }  // clip

  DESCENT_HD terms<double> at(std::int64_t t) const {
    if (t == 1) return {0, 0, 0, 0, 1, 1, 0, 0};
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, eps, clip ? sqrt(sqrt(double(t - 1))) : HUGE_VAL, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    Real const u = min(k.clip, max(-k.clip, g / max(sqrt(s.v), k.eps)));
    s.v = k.b2 * s.v + k.a2 * g * g;
    s.m = k.b1 * s.m + k.a1 * u;
    return p - k.lr * (s.m + k.wd * p);
  }

  static constexpr field_range<adopt> ranges[] = {{&adopt::lr, at_least_0}, {&adopt::beta1, below_1},
                                                  {&adopt::beta2, below_1}, {&adopt::eps, above_0},
                                                  {&adopt::weight_decay, at_least_0}};
};
static_assert(update_rule<adopt>);

}  // namespace descent
