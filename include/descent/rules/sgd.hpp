// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Gradient descent with momentum (Polyak 1964), Nesterov's form (Sutskever et al. 2013, eq. 7-8, in the shifted
/// variable) and L2 decay, as torch.optim.SGD: lr is outside the buffer, and the first step is not dampened.
///
///     g <- g + wd p                           (decoupled: p <- p - lr wd p instead, with the old p)
///     b <- mu b + (1 - dampening) g           (t = 1: b <- g)
///     p <- p - lr b                           (Nesterov: p <- p - lr (g + mu b))
///
/// `decoupled` is SGDW (Loshchilov & Hutter 2019, algorithm 1, with its alpha in lr) and apex's wd_after_momentum.
/// Without momentum there is no buffer and no dampening.
struct sgd {
  /// Learning rate lr, momentum (mu) and weight_decay (wd) at least 0; dampening finite. With nesterov, momentum is
  /// above 0 and dampening 0.
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, decoupled = false;

  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real lr, mu, gain, wd, decay, nesterov; };
  static constexpr char const* slots[] = {"b"};

  bool uses(std::size_t) const { return momentum != 0; }

  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {lr, momentum, t == 1 || momentum == 0 ? 1 : 1 - dampening, decoupled ? 0 : weight_decay,
            decoupled ? lr * weight_decay : 0, nesterov ? 1.0 : 0.0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.b = k.mu * s.b + k.gain * g;
    return p - k.decay * p - k.lr * select(k.nesterov > Real(0), g + k.mu * s.b, s.b);
  }

  template <class Real> DESCENT_HD Real ahead(Real p, state<Real> const& s) const {
    return p - Real(lr * momentum) * s.b;
  }

  static constexpr field_range<sgd> ranges[] = {{&sgd::lr, at_least_0}, {&sgd::momentum, at_least_0},
                                                {&sgd::dampening, any_finite},
                                                {&sgd::weight_decay, at_least_0}};
  void check() const {
    if (nesterov) {
      detail::require(momentum > 0, "sgd", "momentum", "above 0 with nesterov", momentum);
      detail::require(dampening == 0, "sgd", "dampening", "0 with nesterov", dampening);
    }
  }
};
static_assert(update_rule<sgd>);

}  // namespace descent
