// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// QHM: quasi-hyperbolic momentum, the average of a momentum step and a plain step (Ma & Yarats 2019, eq. 3-4), with L2
/// weight decay. nu = 0 is gradient descent; nu = 1 is momentum whose buffer is a mean. The buffer starts at 0 and is
/// not corrected for bias.
///
///     g <- g + wd p
///     m <- beta m + (1 - beta) g
///     p <- p - lr ((1 - nu) g + nu m)
struct qhm {
  /// Learning rate lr; nu, the weight of the average, in [0, 1]; decay rate beta of m, in [0, 1); weight_decay (wd) at
  /// least 0.
  double lr = 1e-3, nu = 0.7, beta = 0.999, weight_decay = 0;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real lr, nu, now, beta, rest, wd; };  // now = 1 - nu, rest = 1 - beta
  static constexpr char const* slots[] = {"m"};

  bool uses(std::size_t) const { return nu != 0; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, nu, 1 - nu, beta, 1 - beta, weight_decay}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.m = k.beta * s.m + k.rest * g;
    return p - k.lr * (k.now * g + k.nu * s.m);
  }

  static constexpr field_range<qhm> ranges[] = {
      {&qhm::lr, at_least_0}, {&qhm::nu, up_to_1}, {&qhm::beta, below_1}, {&qhm::weight_decay, at_least_0}};
};
static_assert(update_rule<qhm>);

}  // namespace descent
