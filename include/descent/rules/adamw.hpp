// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// AdamW: Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2). The decay is multiplied by lr, as
/// in torch.optim.AdamW.
///
///     m <- b1 m + (1 - b1) g
///     v <- b2 v + (1 - b2) g^2
///     p <- p - lr (m^ / (sqrt(v^) + eps) + wd p)          x^ = x / (1 - b^t)
///
/// `eps_hat` and `bias_correction` are as in adam. Two options change the decay. `decay_after` decays the result of
/// the step, p <- (p - lr u) (1 - lr wd), as in bitsandbytes. `decay_corrected` uses wd sqrt(1 - b2^t) / (1 - b1^t), as
/// in tiny-cuda-nn.
struct adamw {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool eps_hat = false, bias_correction = true, decay_after = false, decay_corrected = false;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, m_unbias, v_unbias, eps, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const m_unbias = bias_correction ? 1 / (1 - power(beta1, t)) : 1;
    double const v_unbias = bias_correction ? 1 / (1 - power(beta2, t)) : 1;
    double const wd = decay_corrected ? weight_decay * m_unbias / sqrt(v_unbias) : weight_decay;
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, decay_after ? (1 - lr * wd) * m_unbias : m_unbias, v_unbias,
            eps_hat ? eps * sqrt(v_unbias) : eps, wd};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p - k.lr * (s.m * k.m_unbias / (sqrt(s.v * k.v_unbias) + k.eps) + k.wd * p);
  }

  static constexpr field_range<adamw> ranges[] = {{&adamw::lr, at_least_0}, {&adamw::beta1, below_1},
                                                  {&adamw::beta2, below_1}, {&adamw::eps, above_0},
                                                  {&adamw::weight_decay, at_least_0}};
  void check() const {
    detail::require_flag(!eps_hat || bias_correction, "adamw", "eps_hat", "off without bias_correction", eps_hat);
    detail::require_flag(!decay_corrected || bias_correction, "adamw", "decay_corrected", "off without bias_correction",
                         decay_corrected);
  }
};
static_assert(update_rule<adamw>);

}  // namespace descent
