// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// Decay with the inverse of time (Robbins & Monro 1951): divided by 1 + rate after `steps` steps and by 1 + 2 rate
/// after twice as many; with `staircase` only at their end. Its sum is infinite, but that of its squares is not.
///
///     s(t) = initial / (1 + rate t / steps)
struct inverse_time {
  /// A finite initial value, which must be given; rate at least 0; at least 1 step.
  double initial = detail::not_given, rate = 1;
  std::int64_t steps = 1;
  bool staircase = false;

  DESCENT_HD double operator()(std::int64_t t) const {
    double const x = staircase ? double(t / steps) : double(t) / double(steps);
    return initial / (1 + rate * x);
  }

  void check() const {
    detail::require_given("inverse_time", "initial", initial);
    detail::require_nonnegative("inverse_time", "rate", rate);
    detail::require_steps("inverse_time", "steps", steps, 1);
  }
};
static_assert(schedule<inverse_time>);

}  // namespace descent
