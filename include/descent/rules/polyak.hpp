// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Gradient descent with Polyak's step size, for a loss f whose smallest value is known or bounded (Polyak 1987; capped
/// as SPS_max, Loizou et al. 2021, eq. 2, with c = 1). Needs the policy loss_at. As optax.polyak_sgd with scaling 1;
/// optax's scaling also enters the norm, so its step shrinks as scaling grows.
///
///     rate <- min((f - f_min) / (||g||^2 + eps), max_lr)      over the model; 0 where ||g||^2 + eps <= 2^-52
///     p    <- p - lr rate g
///
/// `plus` uses max(f - f_min, 0) (SPS+).
struct polyak {
  /// lr, the factor of the step, max_lr, the largest rate, and eps at least 0; f_min, the smallest value of the loss,
  /// finite.
  double lr = 1, max_lr = 1, f_min = 0, eps = 0;
  bool plus = false;

  template <class Real> struct state {};
  template <class Real> struct terms { Real rate; };
  template <class Real> struct sums { Real gg; };
  static constexpr scope sums_over = scope::model;

  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, terms<Real> const&) { return {g * g}; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr}; }

  DESCENT_HD terms<double> at(std::int64_t, sums<double> const& total, double f) const {
    double const gap = plus ? max(f - f_min, 0.0) : f - f_min;
    return {total.gg + eps <= 0x1p-52 ? 0 : lr * min(gap / (total.gg + eps), max_lr)};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return p - k.rate * g;
  }

  static constexpr field_range<polyak> ranges[] = {{&polyak::lr, at_least_0},
                                                   {&polyak::max_lr, at_least_0},
                                                   {&polyak::f_min, any_finite},
                                                   {&polyak::eps, at_least_0}};
};
static_assert(update_rule<polyak> && has_sums<polyak> && has_loss<polyak>);

}  // namespace descent
