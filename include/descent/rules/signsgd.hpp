// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// signSGD (Bernstein et al. 2018, algorithm 1), as optax.sign_sgd, with sign(0) = 0. Neither has weight decay; the one
/// here is signum's.
///
///     p <- p - lr (sign(g) + wd p)
struct signsgd {
  /// Learning rate lr and weight_decay (wd) at least 0.
  double lr = 1e-4, weight_decay = 0;

  template <class Real> struct state {};
  template <class Real> struct terms { Real lr, wd; };

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, weight_decay}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return p - k.lr * (sign(g) + k.wd * p);
  }

  static constexpr field_range<signsgd> ranges[] = {{&signsgd::lr, at_least_0}, {&signsgd::weight_decay, at_least_0}};
};
static_assert(update_rule<signsgd>);

}  // namespace descent
