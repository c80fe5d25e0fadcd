// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// DoG: distance over gradients, SGD without a learning rate to tune (Ivgi, Hinder & Carmon 2023, eq. 1, section 3.3),
/// as optax.contrib.dog. The sums are over all tensors that are not frozen. lr multiplies the step size; the paper has
/// lr = 1 and no decay.
///
///     g <- g + wd p
///     r <- max(r, ||p - p0||)                             r = reps (1 + ||p0||) before the first step
///     G <- G + ||g||^2
///     p <- p - lr r / sqrt(G + eps) g
struct dog {
  /// lr, the factor of the step size, and reps, the size of the first step relative to 1 + ||p0||, at least 0; eps
  /// above 0; weight_decay (wd) at least 0.
  double lr = 1, reps = 1e-6, eps = 1e-8, weight_decay = 0;

  template <class Real> struct state { Real p0; };
  template <class Real> struct terms { Real rate, wd; };
  template <class Real> struct sums { Real dd, gg, pp; };  // ||p - p0||^2, ||g||^2, ||p||^2
  struct memory { double r = 0, G = 0; };
  static constexpr char const* slots[] = {"p0"};
  static constexpr scope sums_over = scope::model;

  static constexpr bool for_sums_only(std::size_t) { return true; }

  template <class Real> DESCENT_HD static state<Real> start(Real p) { return {p}; }

  template <class Real>
  DESCENT_HD static sums<Real> sum(Real p, Real g, state<Real> const& s, terms<Real> const& k) {
    Real const d = p - s.p0;
    g = g + k.wd * p;
    return {d * d, g * g, p * p};
  }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, weight_decay}; }

  DESCENT_HD terms<double> at(std::int64_t, sums<double> const& total, memory& old) const {
    if (old.r == 0) old.r = reps * (1 + sqrt(total.pp));
    old.r = max(old.r, sqrt(total.dd));
    old.G = old.G + total.gg;
    return {lr * old.r / sqrt(old.G + eps), weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return p - k.rate * (g + k.wd * p);
  }

  static constexpr field_range<dog> ranges[] = {
      {&dog::lr, at_least_0}, {&dog::reps, at_least_0}, {&dog::eps, above_0}, {&dog::weight_decay, at_least_0}};
};
static_assert(update_rule<dog> && has_sums<dog> && has_memory<dog> && has_start<dog>);

}  // namespace descent
