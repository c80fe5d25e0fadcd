// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// AMSGrad (Reddi, Kale & Kumar 2018, algorithm 2) with Adam's bias correction, as torch.optim.Adam(amsgrad=True). The
/// maximum is over the stored v. `corrected_max` takes it over v^, as in optax; `bias_correction` = false corrects
/// nothing, as in the paper. `eps_hat` adds eps to the uncorrected sqrt(x), as in ensmallen. `decoupled` decays as
/// torch.optim.AdamW(amsgrad=True), whose default is 1e-2. If `decay_by_lr` is false, that decay is not multiplied by
/// lr, as in flashlight.
///
///     g <- g + wd p                                       (decoupled: p <- p - lr wd p instead)
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) g^2
///     x <- max(x, v)
///     p <- p - lr m^ / (sqrt(x^) + eps)                   x^ = x / (1 - b2^t),  m^ = m / (1 - b1^t)
struct amsgrad {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false, decay_by_lr = true, corrected_max = false, bias_correction = true, eps_hat = false;

  template <class Real> struct state { Real m, v, x; };
  template <class Real> struct terms { Real rate, b1, a1, b2, a2, v_unbias, x_unbias, eps, wd, decay; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v", "x"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const rate = bias_correction ? lr / (1 - power(beta1, t)) : lr;
    double const unbias = bias_correction ? 1 / (1 - power(beta2, t)) : 1;
    return {rate, beta1, 1 - beta1, beta2, 1 - beta2, corrected_max ? unbias : 1, corrected_max ? 1 : unbias,
            eps_hat ? eps * sqrt(unbias) : eps, decoupled ? 0 : weight_decay,
            decoupled ? (decay_by_lr ? lr : 1) * weight_decay : 0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    s.x = max(s.x, s.v * k.v_unbias);
    return p - (k.rate * (s.m / (sqrt(s.x * k.x_unbias) + k.eps)) + k.decay * p);
  }

  static constexpr field_range<amsgrad> ranges[] = {{&amsgrad::lr, at_least_0},
                                                    {&amsgrad::beta1, below_1},
                                                    {&amsgrad::beta2, below_1},
                                                    {&amsgrad::eps, above_0},
                                                    {&amsgrad::weight_decay, at_least_0}};
  void check() const {
    detail::require_flag(decay_by_lr || decoupled, "amsgrad", "decay_by_lr", "on unless decoupled", decay_by_lr);
    detail::require_flag(!corrected_max || bias_correction, "amsgrad", "corrected_max", "off without bias_correction",
                         corrected_max);
    detail::require_flag(!eps_hat || bias_correction, "amsgrad", "eps_hat", "off without bias_correction", eps_hat);
    detail::require_flag(!eps_hat || !corrected_max, "amsgrad", "eps_hat", "off with corrected_max", eps_hat);
  }
};
static_assert(update_rule<amsgrad>);

}  // namespace descent
