// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Adam (Kingma & Ba 2015, algorithm 1), with L2 weight decay as in torch.optim.Adam.
///
///     g <- g + wd p
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) g^2
///     p <- p - lr m^ / (sqrt(v^) + eps)        x^ = x / (1 - b^t)
///
/// `eps_hat` adds eps to sqrt(v) before the bias correction, as in the last remark of section 2 of the paper, in
/// TensorFlow and in torch.optim.SparseAdam: sqrt(v^) + eps / sqrt(1 - b2^t). Without `bias_correction` x^ = x, the
/// default in MLX.
struct adam {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool eps_hat = false, bias_correction = true;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, m_unbias, v_unbias, eps, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const m_unbias = bias_correction ? 1 / (1 - power(beta1, t)) : 1;
    double const v_unbias = bias_correction ? 1 / (1 - power(beta2, t)) : 1;
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, m_unbias, v_unbias, eps_hat ? eps * sqrt(v_unbias) : eps,
            weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p - k.lr * (s.m * k.m_unbias / (sqrt(s.v * k.v_unbias) + k.eps));
  }

  static constexpr field_range<adam> ranges[] = {{&adam::lr, at_least_0}, {&adam::beta1, below_1},
                                                 {&adam::beta2, below_1}, {&adam::eps, above_0},
                                                 {&adam::weight_decay, at_least_0}};
  void check() const {
    detail::require_flag(!eps_hat || bias_correction, "adam", "eps_hat", "off without bias_correction", eps_hat);
  }
};
static_assert(update_rule<adam>);

}  // namespace descent
