// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// DoWG: distance over weighted gradients, normalized SGD without a learning rate to tune (Khaled, Mishchenko & Jin
/// 2023, algorithm 1), as optax.contrib.dowg, whose init_estim_sq_dist is reps^2. The sums are over all tensors that
/// are not frozen. lr multiplies the step size; the paper has lr = 1, and neither decay nor eps.
///
///     g <- g + wd p
///     r <- max(r, ||p - p0||)                             r = reps before the first step
///     G <- G + r^2 ||g||^2
///     p <- p - lr r^2 / (sqrt(G) + eps) g
struct dowg {
  /// lr, the factor of the step size, and reps, the first estimate of the distance, at least 0; eps above 0;
  /// weight_decay (wd) at least 0.
  double lr = 1, reps = 1e-2, eps = 1e-4, weight_decay = 0;

  template <class Real> struct state { Real p0; };
  template <class Real> struct terms { Real rate, wd; };
  template <class Real> struct sums { Real dd, gg; };  // ||p - p0||^2, ||g||^2
  struct memory { double rr = 0, G = 0; };             // rr = r^2
  static constexpr char const* slots[] = {"p0"};
  static constexpr scope sums_over = scope::model;

  static constexpr bool for_sums_only(std::size_t) { return true; }

  template <class Real> DESCENT_HD static state<Real> start(Real p) { return {p}; }

  template <class Real>
  DESCENT_HD static sums<Real> sum(Real p, Real g, state<Real> const& s, terms<Real> const& k) {
    Real const d = p - s.p0;
    g = g + k.wd * p;
    return {d * d, g * g};
  }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, weight_decay}; }

  DESCENT_HD terms<double> at(std::int64_t, sums<double> const& total, memory& old) const {
    old.rr = max(max(old.rr, reps * reps), total.dd);
    old.G = old.G + old.rr * total.gg;
    return {lr * old.rr / (sqrt(old.G) + eps), weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return p - k.rate * (g + k.wd * p);
  }

  static constexpr field_range<dowg> ranges[] = {
      {&dowg::lr, at_least_0}, {&dowg::reps, at_least_0}, {&dowg::eps, above_0}, {&dowg::weight_decay, at_least_0}};
};
static_assert(update_rule<dowg> && has_sums<dowg> && has_memory<dowg> && has_start<dowg>);

}  // namespace descent
