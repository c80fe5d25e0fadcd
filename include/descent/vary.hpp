// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/policy.hpp>
#include <descent/schedule.hpp>

#include <limits>

/// Scheduled hyperparameters: the schedule's value at the current step replaces the field in every group.
/// Evaluated on the device when the optimizer is there, so a captured graph follows its schedule.
namespace descent {

namespace detail {

template <class> struct member_pointer;
template <class Rule, class T> struct member_pointer<T Rule::*> { using rule = Rule; using field = T; };

template <class Rule> concept has_lr = requires(Rule r) { { r.lr } -> std::same_as<double&>; };

template <auto Field, class Schedule> struct varied {
  using policy_kind = kind::field<Field>;
  Schedule schedule;

  template <class Rule>
  static constexpr bool belongs = std::is_base_of_v<typename member_pointer<decltype(Field)>::rule, Rule>;

  /// Other is the rule of matrices, if there is one.
  template <class Rule, class Other = void> static constexpr void require_rule() {
    static_assert(belongs<Rule> || belongs<Other>,
                  "vary<&rule::field>(schedule): the field belongs to another rule than the optimizer's");
  }
  template <class Rule> DESCENT_HD void apply([[maybe_unused]] Rule& rule, [[maybe_unused]] std::int64_t step) const {
    if constexpr (belongs<Rule>) rule.*Field = schedule(step);
  }
  template <class Rule> void forget([[maybe_unused]] Rule& rule) const {
    if constexpr (belongs<Rule>) rule.*Field = std::numeric_limits<double>::quiet_NaN();
  }
};

/// The field `lr` of whatever rule the optimizer has.
template <class Schedule> struct varied_lr {
  using policy_kind = kind::field<nullptr>;
  Schedule schedule;

  template <class Rule> static constexpr void require_rule() {
    static_assert(has_lr<Rule>, "learning_rate(schedule): the rule has no field 'double lr'");
  }
  template <class Rule> DESCENT_HD void apply(Rule& rule, std::int64_t step) const { rule.lr = schedule(step); }
  template <class Rule> void forget(Rule& rule) const { rule.lr = std::numeric_limits<double>::quiet_NaN(); }
};

template <class S> constexpr void require_schedule() {
  static_assert(schedule<S>,
                "a schedule is trivially copyable and has 'double operator()(std::int64_t step) const'");
}

}  // namespace detail

/// Any double field of the rule: `vary<&adamw::weight_decay>(linear{...})`.
template <auto Field, class Schedule> constexpr detail::varied<Field, Schedule> vary(Schedule schedule) {
  static_assert(std::is_same_v<typename detail::member_pointer<decltype(Field)>::field, double>,
                "vary<&rule::field>(schedule): only fields of type double follow a schedule");
  detail::require_schedule<Schedule>();
  return {schedule};
}

/// The field lr of the optimizer's rule.
template <class Schedule> constexpr detail::varied_lr<Schedule> learning_rate(Schedule schedule) {
  detail::require_schedule<Schedule>();
  return {schedule};
}

}  // namespace descent
