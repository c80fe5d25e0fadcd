// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

#include <limits>

namespace descent {

/// Exponential decay, or growth if `factor` is above 1: multiplied by `factor` over every `steps` steps, evenly or,
/// with `staircase`, at their end. `limit`, if set, is the lowest value of a decay or the highest of a growth.
///
///     s(t) = initial factor^(t / steps)
struct exponential {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();  ///< no limit

  /// A finite initial value, which must be given; factor above 0; at least 1 step; limit finite or none.
  double initial = detail::not_given, factor = 1;
  std::int64_t steps = 1;
  bool staircase = false;
  double limit = none;

  DESCENT_HD double operator()(std::int64_t t) const {
    double value = detail::decayed(initial, factor, t / steps);
    if (!staircase && t % steps != 0) value *= descent::pow(factor, double(t % steps) / double(steps));
    if (is_nan(limit)) return value;
    return (factor < 1 ? value < limit : value > limit) ? limit : value;
  }

  void check() const {
    detail::require_given("exponential", "initial", initial);
    detail::require_positive("exponential", "factor", factor);
    detail::require_steps("exponential", "steps", steps, 1);
    if (!is_nan(limit)) detail::require(is_finite(limit), "exponential", "limit", "finite, or NaN for no limit", limit);
  }
};
static_assert(schedule<exponential>);

}  // namespace descent
