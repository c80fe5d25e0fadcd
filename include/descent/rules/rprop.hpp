// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Rprop: resilient backpropagation (Riedmiller & Braun 1993), as torch.optim.Rprop. After a change of sign the step
/// size shrinks, and the gradient counts as 0 in this and in the next update (iRprop-, Igel & Huesken 2000). Use full
/// batches, because only signs matter.
///
///     d <- eta_plus d  where g g_ > 0,  eta_minus d  where g g_ < 0,  then min_step <= d <= max_step
///     g <- 0           where g g_ < 0                     d = lr, g_ = 0 before the first step
///     p <- p - sign(g) d
///     g_ <- g
///
/// lr is only the first step size: after construction, neither a new lr nor a schedule of it has any effect.
struct rprop {
  /// First step size lr at least 0; factors eta_minus in (0, 1) and eta_plus above 1; limits 0 <= min_step <= max_step
  /// of the step size.
  double lr = 1e-2, eta_minus = 0.5, eta_plus = 1.2, min_step = 1e-6, max_step = 50;

  template <class Real> struct state { Real g_, d; };
  template <class Real> struct terms { Real minus, plus, min, max; };
  static constexpr char const* slots[] = {"g_", "d"};

  template <class Real> DESCENT_HD state<Real> start(Real) const { return {Real(0), Real(lr)}; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {eta_minus, eta_plus, min_step, max_step}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    Real const turn = g * s.g_, zero = Real(0);
    Real const d = select(turn > zero, k.plus, select(turn < zero, k.minus, Real(1))) * s.d;
    s.d = min(max(d, k.min), k.max);
    s.g_ = select(turn < zero, zero, g);
    return p - sign(s.g_) * s.d;
  }

  static constexpr field_range<rprop> ranges[] = {{&rprop::lr, at_least_0},
                                                  {&rprop::eta_minus, inside_0_1},
                                                  {&rprop::eta_plus, interval{1, no_limit, "finite and above 1", true}},
                                                  {&rprop::min_step, at_least_0},
                                                  {&rprop::max_step, at_least_0}};
  void check() const {
    detail::require(max_step >= min_step && is_finite(max_step), "rprop", "max_step", "finite and at least min_step",
                    max_step);
  }
};
static_assert(update_rule<rprop> && has_start<rprop>);

}  // namespace descent
