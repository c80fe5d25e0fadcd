// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// NAdam: Adam with Nesterov's momentum (Dozat 2016, algorithm 2), as torch.optim.NAdam, with the paper's momentum
/// schedule. M is the product of mu_t over the updates. With momentum_decay = infinity mu_t = b1, as in optax.nadam.
/// `eps_hat` is as in adam, and as in ensmallen.
///
///     mu_t = b1 (1 - 0.96^(psi t) / 2)                    psi = momentum_decay
///     M <- mu_t M                                         M = 1 before the first step
///     g <- g + wd p                                       (decoupled: p <- p - lr wd p instead)
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) g^2
///     p <- p - lr ((1 - mu_t) / (1 - M) g + mu_t+1 / (1 - M mu_t+1) m) / (sqrt(v^) + eps)     v^ = v / (1 - b2^t)
struct nadam {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay (wd) and
  /// momentum_decay (psi) at least 0.
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled = false, eps_hat = false;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real g_rate, m_rate, b1, a1, b2, a2, v_unbias, eps, wd, decay; };  // a = 1 - b
  struct memory { double M = 1; };
  static constexpr char const* slots[] = {"m", "v"};

  /// The momentum mu_t of update t.
  DESCENT_HD double mu(std::int64_t t) const { return beta1 * (1 - 0.5 * ::pow(0.96, momentum_decay * double(t))); }

  DESCENT_HD terms<double> at(std::int64_t t, memory& old) const {
    double const next = mu(t + 1);
    old.M = mu(t) * old.M;
    double const v_unbias = 1 / (1 - power(beta2, t));
    return {lr * (1 - mu(t)) / (1 - old.M), lr * next / (1 - old.M * next), beta1, 1 - beta1, beta2, 1 - beta2,
            v_unbias, eps_hat ? eps * sqrt(v_unbias) : eps,
            decoupled ? 0 : weight_decay, decoupled ? lr * weight_decay : 0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p - ((k.g_rate * g + k.m_rate * s.m) / (sqrt(s.v * k.v_unbias) + k.eps) + k.decay * p);
  }

  static constexpr field_range<nadam> ranges[] = {{&nadam::lr, at_least_0}, {&nadam::beta1, below_1},
                                                  {&nadam::beta2, below_1}, {&nadam::eps, above_0},
                                                  {&nadam::weight_decay, at_least_0},
                                                  {&nadam::momentum_decay, at_least_0_or_infinite}};
};
static_assert(update_rule<nadam> && has_memory<nadam>);

}  // namespace descent
