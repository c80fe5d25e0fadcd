// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer.hpp>

/// The cost of an optimizer, computed without constructing it.
namespace descent {

/// Bytes that one step of optimizer{params, rule, policies...} moves per parameter if the rule's settings need every
/// member of its state. For example 40 for half values and gradients, master<float>, adamw, dynamic_loss_scale,
/// clip_norm, ema and zero_grad.
template <class Value, class Gradient, class Rule, class... Ps> constexpr std::int64_t bytes_per_parameter() {
  using plan = typename detail::optimizer_traits<Value, Gradient, Rule, Ps...>::plan;
  std::array<bool, plan::slots> used{};
  for (bool& one : used) one = true;
  return detail::bytes_of_step<plan>(used);
}

/// The memory that optimizer{params, rule, policies...} would own; nothing is allocated.
template <class Value, class Gradient, class Rule, class... Ps>
memory_report memory(parameters<Value, Gradient> const& params, Rule const& rule, Ps const&... policies) {
  return optimizer<Value, Gradient, Rule, Ps...>::memory(params, rule, policies...);
}

}  // namespace descent
