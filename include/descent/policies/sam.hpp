// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/policy.hpp>

namespace descent {

/// Sharpness-aware minimization (Foret et al. 2021, algorithm 1): the step is taken with the gradient at a point
/// uphill, so an iteration has two backward passes:
///
///     backward at p;   optimizer::ascend():   p_ <- p + rho g / ||g||     L2, of the true gradient, over all groups
///     backward at p_;  optimizer::step():     p  <- rule(p, g(p_))
///
/// ascend() keeps the values and step() puts them back first; capture both in one graph, or none. Where g is zero or
/// not finite p stays. The rule's state, clipping and averages see the second gradient alone; set gradients to zero in
/// between as always. The values that are kept take as many bytes as the values.
struct sam {
  double rho = 0.05;

  using policy_kind = kind::ascent;
  void check() const { detail::require_nonnegative("sam", "rho", rho); }
};

}  // namespace descent
