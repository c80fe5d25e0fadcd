// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Fromage: Frobenius matched gradient descent (Bernstein et al. 2020, algorithm 1). Each tensor is a layer, and lr is
/// its relative change. As in optax.fromage, norms below min_norm count as min_norm. With min_norm = 0 the ratio is 1
/// where a norm is 0. A tensor shrinks even if its gradient is zero.
///
///     p <- (p - lr ||p|| / ||g|| g) / sqrt(1 + lr^2)      norms over the tensor
struct fromage {
  /// lr, the length of a step relative to ||p||, and min_norm, the floor of both norms, at least 0.
  double lr = 1e-2, min_norm = 1e-6;

  template <class Real> struct state {};
  template <class Real> struct terms { Real rate, shrink; };
  template <class Real> struct sums { Real pp, gg; };  // squared norms
  static constexpr scope sums_over = scope::tensor;

  template <class Real> DESCENT_HD static sums<Real> sum(Real p, Real g, terms<Real> const&) { return {p * p, g * g}; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, 1 / sqrt(1 + lr * lr)}; }

  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total) const {
    double const p = max(sqrt(total.pp), min_norm), g = max(sqrt(total.gg), min_norm);
    terms<double> k = at(t);
    if (p > 0 && g > 0) k.rate *= p / g;
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return (p - k.rate * g) * k.shrink;
  }

  static constexpr field_range<fromage> ranges[] = {{&fromage::lr, at_least_0}, {&fromage::min_norm, at_least_0}};
};
static_assert(update_rule<fromage> && has_sums<fromage>);

}  // namespace descent
