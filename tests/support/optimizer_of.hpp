// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/loss_at.hpp>
#include <descent/optimizer.hpp>

/// Optimizers for tests of every rule.
namespace test {

/// What rules that look at the loss find.
inline float current_loss = 0.125f;

/// An optimizer, with loss_at where the rule needs it.
template <class List, class Rule, class... Ps> auto optimizer_of(List const& list, Rule const& rule, Ps... policies) {
  if constexpr (descent::has_loss<Rule>)
    return descent::optimizer{list, rule, policies..., descent::loss_at{&current_loss}};
  else return descent::optimizer{list, rule, policies...};
}

}  // namespace test
