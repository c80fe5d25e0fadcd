// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Schedule-free AdamW (Defazio et al. 2024, algorithm 1), as optax.contrib.schedule_free_adamw. The parameters hold y,
/// where gradients are taken. Evaluate and keep x = (y - (1 - b1) z) / b1, the average of z, through swap_average().
/// The decay uses y. There is no warmup in the rule: use a schedule of lr.
///
///     v <- b2 v + (1 - b2) g^2
///     u <- g / (sqrt(v / (1 - b2^t)) + eps) + wd y
///     w <- (max of all lr)^power
///     c <- w / (sum of all w)
///     y <- y + c (z - y) - lr (1 - b1 (1 - c)) u          which is: x <- (1 - c) x + c (z - lr u),
///     z <- z - lr u                                                 y <- b1 x + (1 - b1) (z - lr u)
struct schedule_free_adamw {
  /// Learning rate lr; beta1, the weight of x in y, in (0, 1); decay rate beta2 of v, in [0, 1); eps above 0;
  /// weight_decay (wd) and power at least 0.
  double lr = 0.0025, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, power = 2;

  template <class Real> struct state { Real z, v; };
  template <class Real> struct terms { Real lr, c, rate, b2, a2, v_unbias, eps, wd; };  // rate = lr (1 - b1 (1 - c))
  struct memory { double max_lr = 0, sum = 0; };
  static constexpr char const* slots[] = {"z", "v"};
  static constexpr bool step_needs_p = true;

  template <class Real> DESCENT_HD static state<Real> start(Real p) { return {p, Real(0)}; }

  DESCENT_HD terms<double> at(std::int64_t t, memory& old) const {
    old.max_lr = max(old.max_lr, lr);
    double const w = pow(old.max_lr, power);
    old.sum = old.sum + w;
    double const c = old.sum > 0 ? w / old.sum : 0;
    return {lr, c, lr * (1 - beta1 * (1 - c)), beta2, 1 - beta2, 1 / (1 - descent::power(beta2, t)), eps, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real y, Real g, state<Real>& s, terms<Real> const& k) {
    s.v = k.b2 * s.v + k.a2 * g * g;
    Real const u = g / (sqrt(s.v * k.v_unbias) + k.eps) + k.wd * y;
    y = y + k.c * (s.z - y) - k.rate * u;
    s.z = s.z - k.lr * u;
    return y;
  }

  /// The average x of an element.
  template <class Real> DESCENT_HD Real averaged(Real y, state<Real> const& s) const {
    return (y - Real(1 - beta1) * s.z) / Real(beta1);
  }

  static constexpr field_range<schedule_free_adamw> ranges[] = {
      {&schedule_free_adamw::lr, at_least_0},
      {&schedule_free_adamw::beta1, inside_0_1},
      {&schedule_free_adamw::beta2, below_1},
      {&schedule_free_adamw::eps, above_0},
      {&schedule_free_adamw::weight_decay, at_least_0},
      {&schedule_free_adamw::power, at_least_0}};
};
static_assert(update_rule<schedule_free_adamw> && has_memory<schedule_free_adamw> && has_start<schedule_free_adamw>);

}  // namespace descent
