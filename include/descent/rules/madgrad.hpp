// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// MADGRAD: momentumized, adaptive dual averaging (Defazio & Jelassi 2022, arXiv 2021, algorithm 1). The iterate is the
/// start minus the sum of all gradients over the cube root of the sum of their squares. As optax.contrib.madgrad, with
/// L2 weight decay, except that a step at lr = 0 adds nothing to s and v, as in the authors' code; optax adds eps g.
///
///     g <- g + wd p
///     l <- (lr + eps) sqrt(t)                             (lr = 0: l <- 0)
///     s <- s + l g
///     v <- v + l g^2
///     z <- p0 - s / (cbrt(v) + eps)
///     p <- mu p + (1 - mu) z
///
/// The momentum is applied to the iterates: if lr reaches 0, p still moves towards z.
struct madgrad {
  /// Learning rate lr; momentum (mu) of the iterates, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-2, momentum = 0.9, eps = 1e-6, weight_decay = 0;

  template <class Real> struct state { Real s, v, p0; };
  template <class Real> struct terms { Real l, rest, eps, wd; };  // rest = 1 - mu
  static constexpr char const* slots[] = {"s", "v", "p0"};
  static constexpr bool step_needs_p = true;

  template <class Real> DESCENT_HD static state<Real> start(Real p) { return {Real(0), Real(0), p}; }

  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {lr > 0 ? (lr + eps) * sqrt(double(t)) : 0, 1 - momentum, eps, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.s = s.s + k.l * g;
    s.v = s.v + k.l * g * g;
    Real const z = s.p0 - s.s / (cbrt(s.v) + k.eps);
    return p + k.rest * (z - p);
  }

  static constexpr field_range<madgrad> ranges[] = {{&madgrad::lr, at_least_0},
                                                    {&madgrad::momentum, below_1},
                                                    {&madgrad::eps, above_0},
                                                    {&madgrad::weight_decay, at_least_0}};
};
static_assert(update_rule<madgrad> && has_start<madgrad>);

}  // namespace descent
