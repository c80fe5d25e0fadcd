// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Schedule-free SGD (Defazio et al. 2024, eq. 1-3, averaged with the weights w of algorithm 1), as
/// optax.contrib.schedule_free_sgd. The parameters hold y, where gradients are taken. Evaluate and keep
/// x = (y - (1 - b1) z) / b1, the average of z, through `averaged`.
///
///     g <- g + wd y
///     w <- (max of all lr)^power
///     c <- w / (sum of all w)
///     y <- y + c (z - y) - lr (1 - b1 (1 - c)) g          which is: x <- (1 - c) x + c (z - lr g),
///     z <- z - lr g                                                 y <- b1 x + (1 - b1) (z - lr g)
///
/// The paper needs no schedule except a warmup of lr; w keeps the first steps out of the average.
struct schedule_free_sgd {
  /// Learning rate lr; beta1, the weight of x in y, in (0, 1); weight_decay (wd) and power at least 0.
  double lr = 1, beta1 = 0.9, weight_decay = 0, power = 2;

  template <class Real> struct state { Real z; };
  template <class Real> struct terms { Real lr, c, rate, wd; };  // rate = lr (1 - b1 (1 - c))
  struct memory { double max_lr = 0, sum = 0; };
  static constexpr char const* slots[] = {"z"};
  static constexpr bool step_needs_p = true;

  template <class Real> DESCENT_HD static state<Real> start(Real p) { return {p}; }

  DESCENT_HD terms<double> at(std::int64_t, memory& old) const {
    old.max_lr = max(old.max_lr, lr);
    double const w = pow(old.max_lr, power);
    old.sum = old.sum + w;
    double const c = old.sum > 0 ? w / old.sum : 0;
    return {lr, c, lr * (1 - beta1 * (1 - c)), weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real y, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * y;
    y = y + k.c * (s.z - y) - k.rate * g;
    s.z = s.z - k.lr * g;
    return y;
  }

  /// The average x of an element.
  template <class Real> DESCENT_HD Real averaged(Real y, state<Real> const& s) const {
    return (y - Real(1 - beta1) * s.z) / Real(beta1);
  }

  static constexpr field_range<schedule_free_sgd> ranges[] = {{&schedule_free_sgd::lr, at_least_0},
                                                              {&schedule_free_sgd::beta1, inside_0_1},
                                                              {&schedule_free_sgd::weight_decay, at_least_0},
                                                              {&schedule_free_sgd::power, at_least_0}};
};
static_assert(update_rule<schedule_free_sgd> && has_memory<schedule_free_sgd> && has_start<schedule_free_sgd>);

}  // namespace descent
