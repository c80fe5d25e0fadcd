// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// MoMo: momentum with a step size from a model of the loss f, for which a lower bound is known (Schaipp et al. 2024,
/// algorithm 1). Needs the policy loss_at. As optax.contrib.momo; averages start at the first gradient and loss.
///
///     m     <- b m + (1 - b) g
///     f_    <- b f_ + (1 - b) f
///     gamma <- b gamma + (1 - b) <g, p>                       sums over the model
///     h     <- (1 + lr wd) (f_ - lower - gamma) + <m, p>
///     rate  <- min(lr, max(h, 0) / ||m||^2)                   0 where ||m||^2 <= 2^-52
///     p     <- p / (1 + lr wd) - rate m
///
/// The last line is optax's. The authors' code has (p - rate m) / (1 + lr wd), which minimizes the model of the loss
/// with the decay as wd / 2 ||p||^2. Without decay both are the same.
///
/// `adapt` estimates the lower bound during training (section 4, eq. 16 and 17). If h + (1 + lr wd) lower is below
/// (1 + lr wd) lower, lower becomes max(h' / (1 + lr wd), lower_bound), where h' is half of the former. After the step
/// it is max(f_ + <m, p> - gamma - rate ||m||^2 / 2, lower_bound).
struct momo {
  /// lr, the largest step size, and weight_decay (wd) at least 0; beta, the decay rate of all averages, in [0, 1);
  /// lower_bound of the loss, finite.
  double lr = 1, beta = 0.9, lower_bound = 0, weight_decay = 0;
  bool adapt = false;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real b, a, rate, shrink; };  // a = 1 - b
  template <class Real> struct sums { Real mm, mp, gp; };           // ||m||^2, <m, p>, <g, p>
  struct memory { double f = 0, gamma = 0, lower = 0; };
  static constexpr char const* slots[] = {"m"};
  static constexpr scope sums_over = scope::model;

  template <class Real> DESCENT_HD static Real averaged(Real g, state<Real> const& s, terms<Real> const& k) {
    return k.b * s.m + k.a * g;
  }

  template <class Real>
  DESCENT_HD static sums<Real> sum(Real p, Real g, state<Real> const& s, terms<Real> const& k) {
    Real const m = averaged(g, s, k);
    return {m * m, m * p, g * p};
  }

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const b = t == 1 ? 0 : beta;
    return {b, 1 - b, 0, 1 / (1 + lr * weight_decay)};
  }

  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total, memory& old, double f) const {
    terms<double> k = at(t);
    double const grow = 1 + lr * weight_decay;
    if (t == 1) old.lower = lower_bound;
    old.f = k.b * old.f + k.a * f;
    old.gamma = k.b * old.gamma + k.a * total.gp;
    double const cap = grow * (old.f - old.gamma) + total.mp;
    if (adapt && cap < grow * old.lower) old.lower = max(cap / (2 * grow), lower_bound);
    double const h = cap - grow * old.lower;
    k.rate = total.mm <= 0x1p-52 ? 0 : min(lr, max(h, 0.0) / total.mm);
    if (adapt) old.lower = max(old.f + total.mp - old.gamma - k.rate * total.mm / 2, lower_bound);
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = averaged(g, s, k);
    return k.shrink * p - k.rate * s.m;
  }

  static constexpr field_range<momo> ranges[] = {{&momo::lr, at_least_0}, {&momo::beta, below_1},
                                                 {&momo::lower_bound, any_finite},
                                                 {&momo::weight_decay, at_least_0}};
};
static_assert(update_rule<momo> && has_sums<momo> && has_memory<momo> && has_loss<momo>);

}  // namespace descent
