// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Padam: partially adaptive momentum, between SGD (partial = 0) and AMSGrad (partial = 1/2) (Chen et al. 2018,
/// algorithm 1). Bias correction is that of the authors' code, where eps is added to the uncorrected root. `amsgrad`
/// uses the largest v so far, otherwise v itself. Weight decay is in its L2 form.
///
///     g     <- g + wd p
///     m     <- b1 m + (1 - b1) g
///     v     <- b2 v + (1 - b2) g^2
///     v_max <- max(v_max, v)
///     p     <- p - lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v_max) + eps)^(2 partial)
struct padam {
  /// Learning rate lr; partial in [0, 1/2]; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay
  /// (wd) at least 0.
  double lr = 0.1, partial = 0.25, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = true;

  template <class Real> struct state { Real m, v, v_max; };
  template <class Real> struct terms { Real rate, b1, a1, b2, a2, eps, exponent, wd, largest; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v", "v_max"};

  bool uses(std::size_t slot) const { return slot < 2 || amsgrad; }

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const rate = lr * sqrt(1 - power(beta2, t)) / (1 - power(beta1, t));
    return {rate, beta1, 1 - beta1, beta2, 1 - beta2, eps, 2 * partial, weight_decay, amsgrad ? 1.0 : 0.0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    s.v_max = max(k.largest * s.v_max, s.v);
    return p - k.rate * (s.m / pow(sqrt(s.v_max) + k.eps, k.exponent));
  }

  static constexpr field_range<padam> ranges[] = {
      {&padam::lr, at_least_0},
      {&padam::partial, interval{0, 0.5, "in [0, 1/2]"}},
      {&padam::beta1, below_1},
      {&padam::beta2, below_1},
      {&padam::eps, above_0},
      {&padam::weight_decay, at_least_0}};
};
static_assert(update_rule<padam>);

}  // namespace descent
