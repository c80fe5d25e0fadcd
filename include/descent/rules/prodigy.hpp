// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Prodigy: AdamW that estimates its learning rate (Mishchenko & Defazio 2023, algorithm 4). The estimate d only grows.
/// The sums are over all tensors that are not frozen. lr multiplies the step; keep it at 1. As optax.contrib.prodigy,
/// which corrects the bias of the moments; the authors' code does so only on request.
///
///     e <- lr d sqrt(1 - b2^t) / (1 - b1^t)               d = d0 before the first step
///     m <- b1 m + (1 - b1) d g
///     v <- b2 v + (1 - b2) d^2 g^2
///     r <- b3 r + e d/d0 <g, p0 - p>
///     s <- b3 s + e d/d0 g                                (safeguard_warmup: d d/d0 g)
///     d <- max(d, d_coef r / ||s||_1)
///     p <- p - e (m / (sqrt(v) + d eps) + wd p)
///
/// The last line uses the new d with eps, and the old one in e, m and v, as in the authors' code; the paper uses the
/// old one everywhere. v and s scale with d^2 and d^2/d0. half cannot hold them if d0 is small; bfloat16 can.
struct prodigy {
  /// lr, the factor of the step, at least 0; decay rates beta1 of m, beta2 of v and beta3 of r and s, in [0, 1); eps
  /// and the first estimate d0 above 0; weight_decay (wd) and d_coef, the factor of the estimate, at least 0.
  double lr = 1, beta1 = 0.9, beta2 = 0.999, beta3 = 0, eps = 1e-8, weight_decay = 0;  // beta3 = 0: sqrt(beta2)
  double d0 = 1e-6, d_coef = 1;
  bool safeguard_warmup = false;

  template <class Real> struct state { Real m, v, s, p0; };
  template <class Real> struct terms { Real e, b1, a1, b2, a2, b3, a3, eps, wd; };  // a: of the gradient
  template <class Real> struct sums { Real gd, s; };                                // <g, p0 - p>, ||s||_1
  struct memory { double d = 0, r = 0; };
  static constexpr char const* slots[] = {"m", "v", "s", "p0"};
  static constexpr scope sums_over = scope::model;

  static constexpr bool for_sums_only(std::size_t slot) { return slot == 3; }

  template <class Real> DESCENT_HD static state<Real> start(Real p) { return {Real(0), Real(0), Real(0), p}; }

  template <class Real>
  DESCENT_HD static sums<Real> sum(Real p, Real g, state<Real> const& s, terms<Real> const& k) {
    return {g * (s.p0 - p), abs(k.b3 * s.s + k.a3 * g)};
  }

  DESCENT_HD terms<double> at(std::int64_t t, memory const& old) const {
    double const d = max(old.d, d0), b3 = beta3 > 0 ? beta3 : sqrt(beta2);
    double const e = lr * d * sqrt(1 - power(beta2, t)) / (1 - power(beta1, t));
    return {e, beta1, (1 - beta1) * d, beta2, (1 - beta2) * d * d, b3, (safeguard_warmup ? d : e) * d / d0,
            max(d * eps, 0x1p-126), weight_decay};
  }

  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total, memory& old) const {
    terms<double> k = at(t, old);
    double const d = max(old.d, d0);
    old.r = k.b3 * old.r + k.e * d / d0 * total.gd;
    old.d = total.s > 0 ? max(d, d_coef * old.r / total.s) : d;
    k.eps = max(old.d * eps, 0x1p-126);  // above 0 in float
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    s.s = k.b3 * s.s + k.a3 * g;
    return p - k.e * (s.m / (sqrt(s.v) + k.eps) + k.wd * p);
  }

  static constexpr field_range<prodigy> ranges[] = {{&prodigy::lr, at_least_0},
                                                    {&prodigy::beta1, below_1},
                                                    {&prodigy::beta2, below_1},
                                                    {&prodigy::beta3, below_1},
                                                    {&prodigy::eps, above_0},
                                                    {&prodigy::weight_decay, at_least_0},
                                                    {&prodigy::d0, above_0},
                                                    {&prodigy::d_coef, at_least_0}};
};
static_assert(update_rule<prodigy> && has_sums_of_memory<prodigy> && has_start<prodigy>);

}  // namespace descent
