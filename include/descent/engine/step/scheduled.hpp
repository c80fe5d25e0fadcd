// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/rule.hpp>
#include <descent/schedules/vary.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

/// Rules with their scheduled fields.
namespace descent::detail {

/// Changes to the learning rate from the control block, in addition to schedules.
struct rate_change {
  double scale = 1;  // of on_plateau
  double fixed = 0;  // if above 0, replaces any other
};

template <class Policy> concept follows_step = requires(Policy const& p) { p.schedule; };
template <class Policy> concept reaches_matrices = requires { requires Policy::for_matrices; };

template <class Policies> inline constexpr bool follows_steps = false;
template <class... Ps> inline constexpr bool follows_steps<policy_set<Ps...>> = (follows_step<Ps> || ...);

/// A group's rule with its scheduled fields set for this step.
template <class Rule, class Policies>
DESCENT_HD Rule scheduled(Rule rule, Policies const& policies, std::int64_t step, [[maybe_unused]] int group = 0,
                          [[maybe_unused]] rate_change const& rate = {}) {
  policies.each([&](auto const& p) {
    if constexpr (follows_step<std::remove_cvref_t<decltype(p)>>) p.apply(rule, step, group);
  });
  if constexpr (has_lr<Rule>) {
    rule.lr *= rate.scale;
    if (rate.fixed > 0) rule.lr = rate.fixed;
  }
  return rule;
}

/// The same for the matrix rule, to which learning_rate() does not apply.
template <class Rule, class Policies>
DESCENT_HD Rule scheduled_for_matrices(Rule rule, Policies const& policies, std::int64_t step,
                                       [[maybe_unused]] int group = 0, [[maybe_unused]] rate_change const& rate = {}) {
  policies.each([&]<class P>(P const& p) {
    if constexpr (reaches_matrices<P>) p.apply(rule, step, group);
  });
  if constexpr (has_lr<Rule>) rule.lr *= rate.scale;
  return rule;
}

DESCENT_CALLS
template <class Rule, class Policy, class F>
DESCENT_HD void with_scheduled_field([[maybe_unused]] std::int32_t number, [[maybe_unused]] F const& f) {
  if constexpr (follows_step<Policy>) {
    using field = decltype(Policy::template field_in<Rule>());
    if constexpr (field::known) f(field{}, number);
  }
}
/// Calls f(field, number) for each field of Rule that policy `number` schedules and whose range is known.
DESCENT_CALLS
template <class Rule, class... Ps, class F>
DESCENT_HD void each_scheduled_field(std::type_identity<policy_set<Ps...>>, [[maybe_unused]] F const& f) {
  [[maybe_unused]] std::int32_t number = 0;
  (with_scheduled_field<Rule, Ps>(number++, f), ...);
}

/// The number of the first policy that schedules a field out of its range in Real; -1 if none does.
template <class Real, class Rule, class Policies> DESCENT_HD std::int32_t stray_field(
    [[maybe_unused]] Rule const& rule) {
  std::int32_t first = -1;
  each_scheduled_field<Rule>(std::type_identity<Policies>{}, [&](auto field, std::int32_t number) {
    if (first < 0 && !field.template holds<Real>(rule)) first = number;
  });
  return first;
}

/// Throws std::invalid_argument if schedules move a field of a group's rule out of its range at this step.
template <class Real, class Rule> void check_scheduled(Rule const& rule, std::int64_t step, int group) {
  try {
    check_rule<Real>(rule);
  } catch (std::invalid_argument const& e) {
    throw std::invalid_argument("schedules at update " + std::to_string(step + 1) + ", group " + std::to_string(group) +
                                ": " + e.what());
  }
}

/// The rule of a group, or of any group if -1, with an unusual value in its scheduled fields.
template <class Rule, class Policy> void forget(Rule& rule, Policy const& policy, int group) {
  if constexpr (follows_step<Policy>) policy.forget_in(rule, group);
}
template <class Rule, class... Ps>
Rule unscheduled(Rule rule, [[maybe_unused]] policy_set<Ps...> const& policies, [[maybe_unused]] int group = -1) {
  (forget(rule, static_cast<Ps const&>(policies), group), ...);
  return rule;
}

}  // namespace descent::detail
