// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Signum: the sign of the momentum (Bernstein et al. 2018, algorithm 2), as optax.signum. The decay is that of
/// algorithm 1 in Bernstein et al. 2019 (signSGD with majority vote, arXiv 1810.05291). sign(0) = 0. The momentum is a
/// mean; a sum without the factor 1 - b has the same sign.
///
///     m <- b m + (1 - b) g
///     p <- p - lr (sign(m) + wd p)
struct signum {
  /// Learning rate lr; decay rate beta (b) of m, in [0, 1); weight_decay (wd) at least 0.
  double lr = 1e-4, beta = 0.9, weight_decay = 0;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real lr, b, a, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m"};

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, beta, 1 - beta, weight_decay}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b * s.m + k.a * g;
    return p - k.lr * (sign(s.m) + k.wd * p);
  }

  static constexpr field_range<signum> ranges[] = {
      {&signum::lr, at_least_0}, {&signum::beta, below_1}, {&signum::weight_decay, at_least_0}};
};
static_assert(update_rule<signum>);

}  // namespace descent
