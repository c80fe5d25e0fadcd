// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// AdaBound: Adam with per-element rates clipped to bounds that converge to final_lr, SGD's rate (Luo et al. 2019,
/// algorithm 2). Bias correction and bounds are those of the authors' code, and eps is added to the uncorrected root.
/// `amsbound` uses the largest v so far. Weight decay is in its L2 form, or `decoupled` as in AdamW.
///
///     g <- g + wd p                                              (decoupled: p <- p - lr wd p instead)
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) g^2
///     r <- lr sqrt(1 - b2^t) / (1 - b1^t) / (sqrt(v) + eps)      (amsbound: v_max <- max(v_max, v) for v)
///     p <- p - clip(r, f (1 - 1 / (gamma t + 1)), f (1 + 1 / (gamma t))) m          f = final_lr lr / base_lr
///
/// base_lr is the value of lr when the rule is created, so that a schedule of lr also scales the bounds. Otherwise no
/// schedule would slow down late steps.
struct adabound {
  /// Learning rate lr, final_lr and base_lr at least 0; gamma, the speed at which the bounds close, above 0; decay
  /// rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-3, final_lr = 0.1, base_lr = lr, gamma = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8,
         weight_decay = 0;
  bool amsbound = false, decoupled = false;

  template <class Real> struct state { Real m, v, v_max; };
  template <class Real> struct terms { Real rate, low, high, b1, a1, b2, a2, eps, l2, shrink, largest; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v", "v_max"};

  bool uses(std::size_t slot) const { return slot < 2 || amsbound; }

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const rate = lr * sqrt(1 - power(beta2, t)) / (1 - power(beta1, t)), speed = gamma * double(t);
    double const last = base_lr > 0 ? final_lr * lr / base_lr : 0;
    return {rate,  last * (1 - 1 / (speed + 1)), last * (1 + 1 / speed), beta1, 1 - beta1, beta2, 1 - beta2, eps,
            decoupled ? 0 : weight_decay, decoupled ? lr * weight_decay : 0, amsbound ? 1.0 : 0.0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.l2 * p;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    s.v_max = max(k.largest * s.v_max, s.v);
    return p - k.shrink * p - min(max(k.rate / (sqrt(s.v_max) + k.eps), k.low), k.high) * s.m;
  }

  static constexpr field_range<adabound> ranges[] = {{&adabound::lr, at_least_0},
                                                     {&adabound::final_lr, at_least_0},
                                                     {&adabound::base_lr, at_least_0},
                                                     {&adabound::gamma, above_0},
                                                     {&adabound::beta1, below_1},
                                                     {&adabound::beta2, below_1},
                                                     {&adabound::eps, above_0},
                                                     {&adabound::weight_decay, at_least_0}};
};
static_assert(update_rule<adabound>);

}  // namespace descent
