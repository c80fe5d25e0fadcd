// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// RAdam: rectified Adam (Liu et al. 2020, algorithm 2), as torch.optim.RAdam. It adapts where rho_t > 5 (paper: > 4;
/// optax: >= 5), and adds eps to the root of v before the bias correction. `eps_hat` = false adds it after, as in
/// optax.
///
///     g <- g + wd p                                       (decoupled: p <- p - lr wd p instead)
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) g^2
///     p <- p - lr r sqrt(1 - b2^t) m^ / (sqrt(v) + eps)   where rho_t > 5, else p <- p - lr m^
///
///     rho_t = rho - 2 t b2^t / (1 - b2^t)                 rho = 2 / (1 - b2) - 1,  m^ = m / (1 - b1^t)
///     r = sqrt((rho_t - 4) (rho_t - 2) rho / ((rho - 4) (rho - 2) rho_t))
struct radam {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false, eps_hat = true;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real rate, b1, a1, b2, a2, root, eps, wd, decay; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const unbias = 1 - power(beta2, t), rho = 2 / (1 - beta2) - 1;
    double const rho_t = rho - 2 * double(t) * power(beta2, t) / unbias;
    terms<double> k{lr / (1 - power(beta1, t)), beta1, 1 - beta1, beta2, 1 - beta2, 0, 1,  // divides by 1
                    decoupled ? 0 : weight_decay, decoupled ? lr * weight_decay : 0};
    if (rho_t > 5) {
      k.rate *= sqrt((rho_t - 4) * (rho_t - 2) * rho / ((rho - 4) * (rho - 2) * rho_t)) * sqrt(unbias);
      k.root = 1;
      k.eps = eps_hat ? eps : eps * sqrt(unbias);
    }
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p - (k.rate * (s.m / (select(k.root > Real(0), sqrt(s.v), Real(0)) + k.eps)) + k.decay * p);
  }

  static constexpr field_range<radam> ranges[] = {{&radam::lr, at_least_0}, {&radam::beta1, below_1},
                                                  {&radam::beta2, below_1}, {&radam::eps, above_0},
                                                  {&radam::weight_decay, at_least_0}};
};
static_assert(update_rule<radam>);

}  // namespace descent
