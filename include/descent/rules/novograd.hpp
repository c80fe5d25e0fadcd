// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// NovoGrad (Ginsburg et al. 2019, algorithm 1), with one v per layer. Each tensor is a layer. As in optax.novograd,
/// the decay is inside the momentum, there is no factor 1 - b1, and nothing is corrected for bias.
///
///     v <- b2 v + (1 - b2) ||g||^2                        first step of the tensor: v <- ||g||^2
///     m <- b1 m + (g / (sqrt(v) + eps) + wd p)
///     p <- p - lr m
///
/// apex's options: `init_zero` starts v at 0. `averaging` multiplies what is added to m by 1 - b1. `bias_correction`
/// uses m^ and v^; if v started at the first norm, this makes the first steps short. `raw_moment` divides m, not g:
///
///
///     m <- b1 m + g
///     p <- p - lr (m / (sqrt(v) + eps) + wd p)
///
/// tiny-cuda-nn's options: `decoupled` uses p <- p - lr (m + wd p); `undampened_first_step` does not average the first
/// m.
struct novograd {
  /// Learning rate lr; decay rates beta1 of m and beta2 of v, in [0, 1); eps above 0; weight_decay (wd) at least 0.
  double lr = 1e-2, beta1 = 0.9, beta2 = 0.25, eps = 1e-6, weight_decay = 0;
  bool averaging = false, bias_correction = false, init_zero = false, raw_moment = false;
  bool decoupled = false, undampened_first_step = false;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real rate, b1, gain, wd, decay; };  // wd is inside the momentum, decay outside
  template <class Real> struct sums { Real gg; };  // ||g||^2
  struct memory { double v = -1; };  // -1: before the first step
  static constexpr char const* slots[] = {"m"};
  static constexpr scope sums_over = scope::tensor;

  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, terms<Real> const&) { return {g * g}; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, beta1, 1, weight_decay, 0}; }

  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total, memory& old) const {
    bool const first = old.v < 0;
    old.v = first && !init_zero ? total.gg : beta2 * max(old.v, 0.0) + (1 - beta2) * total.gg;
    double const m_unbias = bias_correction ? 1 / (1 - power(beta1, t)) : 1;
    double const v_unbias = bias_correction ? 1 / (1 - power(beta2, t)) : 1;
    double const gain = 1 / (sqrt(old.v * v_unbias) + eps),
                 a = averaging && !(undampened_first_step && first) ? 1 - beta1 : 1;
    if (raw_moment) return {lr * m_unbias * gain, beta1, a, 0, lr * weight_decay};
    if (decoupled) return {lr * m_unbias, beta1, a * gain, 0, lr * weight_decay};
    return {lr * m_unbias, beta1, a * gain, a * weight_decay, 0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + (k.gain * g + k.wd * p);
    return p - (k.rate * s.m + k.decay * p);
  }

  static constexpr field_range<novograd> ranges[] = {{&novograd::lr, at_least_0},
                                                     {&novograd::beta1, below_1},
                                                     {&novograd::beta2, below_1},
                                                     {&novograd::eps, above_0},
                                                     {&novograd::weight_decay, at_least_0}};
  void check() const {
    detail::require_flag(!decoupled || !raw_moment, "novograd", "decoupled", "off with raw_moment", decoupled);
    detail::require_flag(!undampened_first_step || averaging, "novograd", "undampened_first_step",
                         "off without averaging", undampened_first_step);
  }
};
static_assert(update_rule<novograd> && has_sums<novograd> && has_memory<novograd>);

}  // namespace descent
