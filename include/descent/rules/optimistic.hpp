// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Optimistic gradient descent, for games and saddle points (Daskalakis et al. 2018, with alpha = beta = 1; Mokhtari,
/// Ozdaglar & Pattathil 2020, generalized OGDA, with both free), as optax.optimistic_gradient_descent.
///
///     p   <- p - lr ((alpha + beta) g - beta old)         t = 1: p <- p - lr alpha g
///     old <- g
struct optimistic {
  /// Learning rate lr, and the weights alpha of the gradient and beta of its change, at least 0.
  double lr = 1e-3, alpha = 1, beta = 1;

  template <class Real> struct state { Real old; };
  template <class Real> struct terms { Real lr, gain, beta; };
  static constexpr char const* slots[] = {"old"};

  DESCENT_HD terms<double> at(std::int64_t t) const { return {lr, t == 1 ? alpha : alpha + beta, beta}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    Real const u = k.gain * g - k.beta * s.old;
    s.old = g;
    return p - k.lr * u;
  }

  static constexpr field_range<optimistic> ranges[] = {
      {&optimistic::lr, at_least_0}, {&optimistic::alpha, at_least_0}, {&optimistic::beta, at_least_0}};
};
static_assert(update_rule<optimistic>);

}  // namespace descent
