// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Adamax: Adam with the infinity norm (Kingma & Ba 2015, algorithm 2), as torch.optim.Adamax, with eps inside the
/// maximum; the paper has no eps. `eps_outside` divides by u + eps instead, as in ensmallen and MLX. Without
/// `bias_correction` the step is not divided by 1 - b1^t, as in MLX. `decoupled` is optax.adamaxw.
///
///     g <- g + wd p                                       (decoupled: p <- p - lr wd p instead, with the old p)
///     m <- b1 m + (1 - b1) g
///     u <- max(b2 u, |g| + eps)
///     p <- p - lr / (1 - b1^t) m / u
struct adamax {
  /// Learning rate lr; decay rates beta1 of m and beta2 of u, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool eps_outside = false, bias_correction = true, decoupled = false;

  template <class Real> struct state { Real m, u; };
  template <class Real> struct terms { Real rate, b1, a1, b2, inside, outside, wd, decay; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "u"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const outside = eps_outside ? eps : 0;
    return {bias_correction ? lr / (1 - power(beta1, t)) : lr, beta1, 1 - beta1, beta2, eps - outside, outside,
            decoupled ? 0 : weight_decay, decoupled ? lr * weight_decay : 0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.m = k.b1 * s.m + k.a1 * g;
    s.u = max(k.b2 * s.u, abs(g) + k.inside);
    return p - k.decay * p - k.rate * (s.m / (s.u + k.outside));
  }

  static constexpr field_range<adamax> ranges[] = {{&adamax::lr, at_least_0}, {&adamax::beta1, below_1},
                                                   {&adamax::beta2, below_1}, {&adamax::eps, above_0},
                                                   {&adamax::weight_decay, at_least_0}};
};
static_assert(update_rule<adamax>);

}  // namespace descent
