// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Lion: evolved sign momentum (Chen et al. 2023, program 1). sign(0) = at_zero, which is 0 everywhere except in
/// DeepSpeed. Its kernel has -1, which moves p by +lr where there was never a gradient. The paper leaves the weight
/// decay to the task; the default here is 0 (optax: 1e-3).
///
///     p <- p - lr (sign(b1 m + (1 - b1) g) + wd p)
///     m <- b2 m + (1 - b2) g
struct lion {
  /// Learning rate lr; beta1, the weight of m in the step, and beta2, the decay rate of m, in [0, 1); weight_decay (wd)
  /// at least 0; at_zero, the sign of 0, in [-1, 1].
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0, at_zero = 0;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, wd, at_zero; };  // a = 1 - b
  static constexpr char const* slots[] = {"m"};

  DESCENT_HD terms<double> at(std::int64_t) const {
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, weight_decay, at_zero};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    Real const c = k.b1 * s.m + k.a1 * g;
    Real const direction = select(c == Real(0), k.at_zero, sign(c));
    s.m = k.b2 * s.m + k.a2 * g;
    return p - k.lr * (direction + k.wd * p);
  }

  static constexpr field_range<lion> ranges[] = {{&lion::lr, at_least_0},
                                                 {&lion::beta1, below_1},
                                                 {&lion::beta2, below_1},
                                                 {&lion::weight_decay, at_least_0},
                                                 {&lion::at_zero, interval{-1, 1, "in [-1, 1]"}}};
};
static_assert(update_rule<lion>);

}  // namespace descent
