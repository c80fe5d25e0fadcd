// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/engine/step/plan.hpp>
#include <descent/engine/step/scheduled.hpp>
#include <descent/schedules/vary.hpp>

/// The largest learning rate of a run, by which ema_nesterov divides.
namespace descent::detail {

/// The largest value of a schedule that has a peak or goes from one value to another; 0 if it is not known.
template <class Schedule> double schedule_peak([[maybe_unused]] Schedule const& s) {
  if constexpr (requires { double(s.peak); }) return s.peak;
  else if constexpr (requires { s.then; }) return schedule_peak(s.then);
  else if constexpr (requires { double(s.from), double(s.to); }) return max(s.from, s.to);
  else if constexpr (requires { double(s.value); }) return s.value;
  else return 0;
}

/// `lr`, or what the schedule makes of it at most.
template <class Schedule, way Way> double with_peak(follows<Schedule, Way> const& p, double lr) {
  return (Way == way::multiply ? lr : 1) * schedule_peak(p.schedule);
}

/// Sets ema_nesterov's max_lr, if it is 0, from group 0's rule and the schedule of its lr. Throws std::invalid_argument
/// if the schedule's largest value is not known.
template <class Plan> void find_largest_rate(typename Plan::policies& policies, typename Plan::rule const& rule) {
  auto& lead = get<kind::lookahead>(policies);
  if constexpr (has_lr<typename Plan::rule>) {
    if (!lead.follows_lr || lead.max_lr > 0) return;
    double largest = rule.lr;
    policies.each([&]<class P>(P const& p) {
      if constexpr (follows_step<P>) {
        auto moved = rule;
        moved.lr = 1;
        p.forget_in(moved, 0);
        if (moved.lr != 1) largest = with_peak(p, largest);
      }
    });
    require(is_finite(largest) && largest > 0, "ema_nesterov", "max_lr",
            "the largest learning rate, which is not known here (or follows_lr off)", lead.max_lr);
    lead.max_lr = largest;
  } else {
    require(lead.max_lr == 0, "ema_nesterov", "max_lr", "0, because the rule has no lr", lead.max_lr);
  }
}

}  // namespace descent::detail
