// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>

namespace descent {

/// Sharpness-aware minimization (Foret et al. 2021, algorithm 1): the step uses the gradient at a point uphill, so an
/// iteration has two backward passes:
///
///     backward at p;   optimizer::ascend():   p_ <- p + rho g / ||g||     L2, of the true gradient, over all groups
///     backward at p_;  optimizer::step():     p  <- rule(p, g(p_))
///
/// ascend() saves the values and step() puts them back first; capture both in one graph, or neither. If g is zero or
/// not finite, p does not move. The rule's state, clipping and averages see only the second gradient. Set the gradients
/// to zero in between, as always. The saved values take as many bytes as the values.
struct sam {
  double rho = 0.05;  ///< length of the move, at least 0

  using policy_kind = kind::perturbation;
  static constexpr field_range<sam> ranges[] = {{&sam::rho, at_least_0}};
};

}  // namespace descent
