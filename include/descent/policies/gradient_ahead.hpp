// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Nesterov's method in its literal form (Sutskever et al. 2013, eq. 3-4): the gradient is taken at the point that the
/// momentum alone would reach, and the step is that of plain momentum. For sgd and heavy_ball without `nesterov`, and
/// for any rule that has `ahead(p, s)`. Each step needs one backward pass:
///
///     optimizer::move_ahead():                p_ <- p - mu b               (sgd: p - lr mu b)
///     backward at p_;  optimizer::step():     p  <- rule(p, g(p_))
///
/// step() puts the values back first; capture both calls in one graph, or neither. Before the first step, and in frozen
/// groups, p_ is p. The saved values take as many bytes as the values.
struct gradient_ahead {
  using policy_kind = kind::perturbation;
  /// Fails to compile if the rule has no `ahead`.
  template <class Rule> static constexpr void require_rule() {
    static_assert(has_ahead<Rule>,
                  "gradient_ahead: the rule needs 'template <class Real> Real ahead(Real p, state<Real> const& s) "
                  "const'");
  }
};

}  // namespace descent
