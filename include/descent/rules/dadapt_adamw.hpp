// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// AdamW with D-Adaptation: it estimates the distance to the solution and uses it as the learning rate (Defazio &
/// Mishchenko 2023, algorithm 5). The estimate d only grows. The sums are over all tensors that are not frozen. lr
/// multiplies the step; keep it at 1. As optax.contrib.dadapt_adamw, which corrects the bias of the moments; the
/// authors' code does so only on request.
///
///     e <- lr d sqrt(1 - b2^t) / (1 - b1^t)               d = d0 before the first step
///     r <- b r + (1 - b) e <g, s / (sqrt(v) + eps)>       b = sqrt(b2)
///     m <- b1 m + (1 - b1) e g
///     v <- b2 v + (1 - b2) g^2
///     s <- b s + (1 - b) e g
///     p <- p - m / (sqrt(v) + eps) - e wd p
///     d <- max(d, r / ((1 - b) ||s||_1))                  with the new s
///
/// A step uses d, and r uses v and s, from before the step, as in the authors' code.
struct dadapt_adamw {
  /// lr, the factor of the step, at least 0; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0;
  /// weight_decay (wd) at least 0; d0, the first estimate, above 0.
  double lr = 1, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, d0 = 1e-6;

  template <class Real> struct state { Real m, v, s; };
  template <class Real> struct terms { Real b1, a1, b2, a2, b, a, eps, wd; };  // a: of the gradient; wd = e wd
  template <class Real> struct sums { Real gs, s; };                           // <g, s / (sqrt(v) + eps)>, ||s||_1
  struct memory { double d = 0, r = 0; };
  static constexpr char const* slots[] = {"m", "v", "s"};
  static constexpr scope sums_over = scope::model;

  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, state<Real> const& s, terms<Real> const& k) {
    return {g * s.s / (sqrt(s.v) + k.eps), abs(k.b * s.s + k.a * g)};
  }

  DESCENT_HD terms<double> at(std::int64_t t, memory const& old) const {
    double const d = max(old.d, d0), b = sqrt(beta2);
    double const e = lr * d * sqrt(1 - power(beta2, t)) / (1 - power(beta1, t));
    return {beta1, (1 - beta1) * e, beta2, 1 - beta2, b, (1 - b) * e, eps, e * weight_decay};
  }

  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total, memory& old) const {
    terms<double> const k = at(t, old);
    double const d = max(old.d, d0);
    old.r = k.b * old.r + k.a * total.gs;
    old.d = total.s > 0 ? max(d, old.r / ((1 - k.b) * total.s)) : d;
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    s.s = k.b * s.s + k.a * g;
    return p - s.m / (sqrt(s.v) + k.eps) - k.wd * p;
  }

  static constexpr field_range<dadapt_adamw> ranges[] = {{&dadapt_adamw::lr, at_least_0},
                                                         {&dadapt_adamw::beta1, below_1},
                                                         {&dadapt_adamw::beta2, below_1},
                                                         {&dadapt_adamw::eps, above_0},
                                                         {&dadapt_adamw::weight_decay, at_least_0},
                                                         {&dadapt_adamw::d0, above_0}};
};
static_assert(update_rule<dadapt_adamw> && has_sums_of_memory<dadapt_adamw>);

}  // namespace descent
