// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Adadelta (Zeiler 2012, algorithm 1), as torch.optim.Adadelta: u averages the steps before they are multiplied by lr.
///
///     g <- g + wd p                                       (decoupled: p <- p - lr wd p instead, with the old p)
///     v <- rho v + (1 - rho) g^2
///     d <- sqrt((u + eps) / (v + eps)) g
///     u <- rho u + (1 - rho) d^2
///     p <- p - lr d
///
/// If `decay_by_lr` is false, the decoupled decay is not multiplied by lr, as in flashlight.
struct adadelta {
  /// Learning rate lr; decay rate rho of both averages, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool decoupled = false, decay_by_lr = true;

  template <class Real> struct state { Real v, u; };
  template <class Real> struct terms { Real lr, rho, rest, eps, wd, decay; };  // rest = 1 - rho
  static constexpr char const* slots[] = {"v", "u"};

  DESCENT_HD terms<double> at(std::int64_t) const {
    return {lr, rho, 1 - rho, eps, decoupled ? 0 : weight_decay, decoupled ? (decay_by_lr ? lr : 1) * weight_decay : 0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.v = k.rho * s.v + k.rest * g * g;
    Real const d = sqrt((s.u + k.eps) / (s.v + k.eps)) * g;
    s.u = k.rho * s.u + k.rest * d * d;
    return p - k.decay * p - k.lr * d;
  }

  static constexpr field_range<adadelta> ranges[] = {{&adadelta::lr, at_least_0},
                                                     {&adadelta::rho, below_1}, {&adadelta::eps, above_0},
                                                     {&adadelta::weight_decay, at_least_0}};
  void check() const {
    detail::require_flag(decay_by_lr || decoupled, "adadelta", "decay_by_lr", "on unless decoupled", decay_by_lr);
  }
};
static_assert(update_rule<adadelta>);

}  // namespace descent
