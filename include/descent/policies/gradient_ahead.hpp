// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// Nesterov's method in its literal form (Sutskever et al. 2013, eq. 3-4): the gradient is taken where the momentum
/// alone would lead, and the step is that of plain momentum. For sgd and heavy_ball without `nesterov`, and any rule
/// that has `ahead(p, s)`. One backward pass for each step:
///
///     optimizer::move_ahead():                p_ <- p - mu b               (sgd: p - lr mu b)
///     backward at p_;  optimizer::step():     p  <- rule(p, g(p_))
///
/// step() puts the values back first; capture both in one graph, or none. Before the first step, and in frozen groups,
/// p_ is p. The values that are kept take as many bytes as the values.
struct gradient_ahead {
  using policy_kind = kind::ascent;
  template <class Rule> static constexpr void require_rule() {
    static_assert(has_ahead<Rule>,
                  "gradient_ahead: the rule does not say where, by 'template <class Real> Real ahead(Real p, "
                  "state<Real> const& s) const'");
  }
};

}  // namespace descent
