// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>
#include <descent/core/schedule.hpp>
#include <descent/core/detail/field_name.hpp>
#include <descent/parameters.hpp>
#include <descent/schedules/choose.hpp>
#include <descent/schedules/cycles.hpp>

#include <stdexcept>
#include <string>

/// Scheduled hyperparameters. `vary` and `learning_rate` replace a field by the schedule's value at the current step;
/// `scale` and `scale_learning_rate` multiply each group's own value by it. They apply to every group or to only one.
/// The schedule is evaluated on the device if the optimizer is there, so a captured graph follows it.
namespace descent {

namespace detail {

template <class Rule> concept has_lr = requires(Rule r) { { r.lr } -> std::same_as<double&>; };

enum class way { replace, multiply };

/// A field that follows a schedule.
template <class Rule, auto Field> struct scheduled_field : range_of<Rule, Field> {
  static constexpr bool there = true;
  DESCENT_HD static double of(Rule const& rule) { return rule.*Field; }
  template <class Real> DESCENT_HD static bool holds(Rule const& rule) {
    return range_of<Rule, Field>::template holds<Real>(rule.*Field);
  }
};
struct no_scheduled_field { static constexpr bool there = false, known = false; };

/// What all policies for fields have in common: the schedule, and the group that follows it, or -1 for all.
template <class Schedule, way Way> struct follows {
  static constexpr way how = Way;

  Schedule schedule;
  int group = -1;

  DESCENT_HD void move(double& field, std::int64_t step, int of) const {
    if (group >= 0 && group != of) return;
    double value;
    if constexpr (group_schedule<Schedule>) value = schedule(step, of);
    else value = schedule(step);
    field = Way == way::multiply ? field * value : value;
  }
  /// Sets the field to an unusual value, for any group if `of` is -1. NaN would also do, but -ffinite-math-only may let
  /// it be equal to 0.
  void forget(double& field, int of) const {
    if (group >= 0 && of >= 0 && group != of) return;
    if (Way == way::replace || field != 0) field = 0x1.2345678p-1;
  }
  void check_as(std::string const& name, int groups) const try {
    if constexpr (requires { schedule.check(); }) schedule.check();
    if constexpr (requires { schedule.check_groups(groups); }) schedule.check_groups(groups);
    if (group < -1 || (groups > 0 && group >= groups))
      throw std::invalid_argument("only: the group must be 0 to " + std::to_string(groups - 1) + ", is " +
                                  std::to_string(group));
  } catch (std::invalid_argument const& e) {
    throw std::invalid_argument(name + ": " + e.what());
  }
};

template <auto Field, class Schedule, way Way = way::replace> struct varied : follows<Schedule, Way> {
  using policy_kind = std::conditional_t<Way == way::replace, kind::field<Field>, kind::scaled_field<Field>>;
  static constexpr bool for_matrices = true;

  template <class Rule>
  static constexpr bool belongs = std::is_base_of_v<typename member_pointer<decltype(Field)>::rule, Rule>;

  /// Other is the matrix rule, if there is one.
  template <class Rule, class Other = void> static constexpr void require_rule() {
    static_assert(belongs<Rule> || belongs<Other>,
                  "vary<&rule::field>(schedule): the field belongs to a rule other than the optimizer's, or to a "
                  "policy; the fields of policies cannot follow a schedule");
  }
  template <class Rule>
  DESCENT_HD void apply([[maybe_unused]] Rule& rule, [[maybe_unused]] std::int64_t step, [[maybe_unused]] int g) const {
    if constexpr (belongs<Rule>) this->move(rule.*Field, step, g);
  }
  template <class Rule> void forget_in([[maybe_unused]] Rule& rule, [[maybe_unused]] int g) const {
    if constexpr (belongs<Rule>) this->forget(rule.*Field, g);
  }
  template <class Rule> static constexpr auto field_in() {
    if constexpr (belongs<Rule>) return scheduled_field<Rule, Field>{};
    else return no_scheduled_field{};
  }
  void check_groups(int groups) const { this->check_as(field_name<Field>(), groups); }
  static std::string of_field() { return field_name<Field>(); }

  /// The same for this group only.
  constexpr varied only(descent::group g) const { return {{this->schedule, g.index}}; }
};

/// The field `lr` of the optimizer's rule; if it is multiplied, also that of the matrix rule.
template <class Schedule, way Way = way::replace> struct varied_lr : follows<Schedule, Way> {
  using policy_kind = std::conditional_t<Way == way::replace, kind::field<nullptr>, kind::scaled_field<nullptr>>;
  static constexpr bool for_matrices = Way == way::multiply;

  template <class Rule, class Other = void> static constexpr void require_rule() {
    static_assert(has_lr<Rule> || (for_matrices && has_lr<Other>),
                  "learning_rate(schedule): the rule has no field 'double lr'");
  }
  template <class Rule>
  DESCENT_HD void apply([[maybe_unused]] Rule& rule, [[maybe_unused]] std::int64_t step, [[maybe_unused]] int g) const {
    if constexpr (has_lr<Rule>) this->move(rule.lr, step, g);
  }
  template <class Rule> void forget_in([[maybe_unused]] Rule& rule, [[maybe_unused]] int g) const {
    if constexpr (has_lr<Rule>) this->forget(rule.lr, g);
  }
  template <class Rule> static constexpr auto field_in() {
    if constexpr (has_lr<Rule>) return scheduled_field<Rule, &Rule::lr>{};
    else return no_scheduled_field{};
  }
  void check_groups(int groups) const {
    this->check_as(Way == way::replace ? "learning_rate" : "scale_learning_rate", groups);
  }
  static std::string of_field() { return "lr"; }

  /// The same for this group only.
  constexpr varied_lr only(descent::group g) const { return {{this->schedule, g.index}}; }
};

/// The schedule that a policy stores: any_of for a std::variant.
template <class S> constexpr auto kept(S const& s) {
  static_assert(schedule<S> || group_schedule<S>,
                "a schedule must be trivially copyable and have 'double operator()(std::int64_t step) const'");
  return s;
}
template <class... S> constexpr auto kept(std::variant<S...> const& v) { return any_of<S...>(v); }
template <class S> using kept_type = decltype(kept(std::declval<S const&>()));

template <auto Field> constexpr void require_double() {
  static_assert(std::is_same_v<typename member_pointer<decltype(Field)>::field, double>,
                "vary<&rule::field>(schedule): only fields of type double can follow a schedule");
}

}  // namespace detail

/// A schedule for any double field of the rule: `vary<&adamw::weight_decay>(linear{...})`. `.only(group{1})` restricts
/// it to one group; per_group{...} has a schedule for each.
template <auto Field, class Schedule> constexpr auto vary(Schedule const& schedule) {
  detail::require_double<Field>();
  return detail::varied<Field, detail::kept_type<Schedule>>{{detail::kept(schedule)}};
}

/// The same as a factor: multiplies each group's own value, which group() may change during training.
template <auto Field, class Schedule> constexpr auto scale(Schedule const& schedule) {
  detail::require_double<Field>();
  return detail::varied<Field, detail::kept_type<Schedule>, detail::way::multiply>{{detail::kept(schedule)}};
}

/// A schedule for the field lr of the optimizer's rule.
template <class Schedule> constexpr auto learning_rate(Schedule const& schedule) {
  return detail::varied_lr<detail::kept_type<Schedule>>{{detail::kept(schedule)}};
}

/// The same as a factor: multiplies each group's own lr, also that of the matrix rule.
template <class Schedule> constexpr auto scale_learning_rate(Schedule const& schedule) {
  return detail::varied_lr<detail::kept_type<Schedule>, detail::way::multiply>{{detail::kept(schedule)}};
}

/// Several policies as one value, such as the learning rate and the momentum of one cycle:
/// `together(learning_rate(up_and_down), vary<&sgd::momentum>(down_and_up))`.
template <policy... Ps> constexpr detail::policy_bundle<Ps...> together(Ps... policies) { return {policies...}; }

/// One cycle of the learning rate and the opposite cycle of the momentum, between `low` and `high`, as policies:
/// PyTorch's OneCycleLR with cycle_momentum. Any field can be the momentum:
/// `one_cycle_of<&sgd::momentum>(one_cycle{.peak = 0.1, ...})`, `one_cycle_of<&adamw::beta1>(...)`.
template <auto Momentum> constexpr auto one_cycle_of(one_cycle const& c, double low = 0.85, double high = 0.95) {
  return together(learning_rate(c),
                  vary<Momentum>(one_cycle_momentum{low, high, c.steps, c.rise, c.shape, c.three_phases}));
}

}  // namespace descent
