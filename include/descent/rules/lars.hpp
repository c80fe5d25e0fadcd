// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// LARS: layer-wise adaptive rate scaling (You et al. 2017, algorithm 1). Each tensor is a layer.
///
///     r <- trust ||p|| / (||g|| + wd ||p|| + eps)         over the tensor; 1 where ||p|| or ||g|| is 0
///     b <- mu b + lr r (g + wd p)                         lr inside the buffer, as in the paper
///     p <- p - b                                          (Nesterov: p <- p - (mu b + lr r (g + wd p)))
///
/// `joint_norm` divides by ||g + wd p|| + eps instead, as in optax.lars (r is 1 where that norm or ||p|| is 0). Without
/// `adapt` r is 1, for biases and norms in a separate group (optax's trust_ratio_mask).
struct lars {
  /// Learning rate lr, momentum (mu), weight_decay (wd), the trust coefficient trust and eps at least 0; momentum above
  /// 0 with nesterov.
  double lr = 0.1, momentum = 0.9, weight_decay = 0, trust = 1e-3, eps = 0;
  bool nesterov = false, joint_norm = false, adapt = true;

  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real rate, mu, wd, nesterov; };  // rate = lr r
  template <class Real> struct sums { Real pp, gg, uu; };               // ||p||^2, ||g||^2, ||g + wd p||^2
  static constexpr char const* slots[] = {"b"};
  static constexpr scope sums_over = scope::tensor;

  bool uses(std::size_t) const { return momentum != 0; }

  template <class Real> DESCENT_HD static sums<Real> sum(Real p, Real g, terms<Real> const& k) {
    Real const u = g + k.wd * p;
    return {p * p, g * g, u * u};
  }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, momentum, weight_decay, nesterov ? 1.0 : 0.0}; }

  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total) const {
    double const p = sqrt(total.pp), g = sqrt(joint_norm ? total.uu : total.gg);
    terms<double> k = at(t);
    if (adapt && p > 0 && g > 0) k.rate *= trust * p / (g + (joint_norm ? 0 : weight_decay * p) + eps);
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    Real const step = k.rate * (g + k.wd * p);
    s.b = k.mu * s.b + step;
    return p - select(k.nesterov > Real(0), k.mu * s.b + step, s.b);
  }

  static constexpr field_range<lars> ranges[] = {{&lars::lr, at_least_0},
                                                 {&lars::momentum, at_least_0},
                                                 {&lars::weight_decay, at_least_0},
                                                 {&lars::trust, at_least_0}, {&lars::eps, at_least_0}};
  void check() const {
    if (nesterov) detail::require(momentum > 0, "lars", "momentum", "above 0 with nesterov", momentum);
  }
};
static_assert(update_rule<lars> && has_sums<lars>);

}  // namespace descent
