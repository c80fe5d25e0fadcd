// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Adagrad (Duchi, Hazan & Singer 2011, figure 1, diagonal), as torch.optim.Adagrad. The update is 0 where s is 0, even
/// with eps = 0, where PyTorch divides 0 by 0.
///
///     g <- g + wd p                                       (decoupled: p <- p - lr wd p instead, with the old p)
///     s <- s + g^2                                        s = initial before the first step
///     p <- p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)
///
/// `eps_inside` divides by sqrt(s + eps) instead, as in optax.adagrad (which has eps 1e-7 and initial 0.1).
/// `decoupled` is apex's adagrad_w_mode; its lr is that of the step, including lr_decay. If `decay_by_lr` is false,
/// the decoupled decay is not multiplied by lr, as in flashlight.
struct adagrad {
  /// Learning rate lr and its decay lr_decay per update; eps; weight_decay (wd); initial, the first value of s: all at
  /// least 0.
  double lr = 1e-2, lr_decay = 0, eps = 1e-10, weight_decay = 0, initial = 0;
  bool eps_inside = false, decoupled = false, decay_by_lr = true;

  template <class Real> struct state { Real s; };
  template <class Real> struct terms { Real rate, inside, outside, wd, decay; };  // eps in one of two places
  static constexpr char const* slots[] = {"s"};

  template <class Real> DESCENT_HD state<Real> start(Real) const { return {Real(initial)}; }

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const rate = lr / (1 + double(t - 1) * lr_decay);
    return {rate, eps_inside ? eps : 0, eps_inside ? 0 : eps, decoupled ? 0 : weight_decay,
            decoupled ? (decay_by_lr ? rate : 1) * weight_decay : 0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.s = s.s + g * g;
    return p - k.decay * p - k.rate * select(s.s <= Real(0), Real(0), g / (sqrt(s.s + k.inside) + k.outside));
  }

  static constexpr field_range<adagrad> ranges[] = {{&adagrad::lr, at_least_0},
                                                    {&adagrad::lr_decay, at_least_0},
                                                    {&adagrad::eps, at_least_0},
                                                    {&adagrad::weight_decay, at_least_0},
                                                    {&adagrad::initial, at_least_0}};
  void check() const {
    detail::require_flag(decay_by_lr || decoupled, "adagrad", "decay_by_lr", "on unless decoupled", decay_by_lr);
  }
};
static_assert(update_rule<adagrad> && has_start<adagrad>);

}  // namespace descent
