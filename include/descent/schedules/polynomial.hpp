// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/anneal.hpp>

namespace descent {

/// Polynomial decay: `from` at step 0, `to` from step `steps` on. With 0 steps, `to` from the start.
///
///     s(t) = to + (from - to) (1 - min(t, steps) / steps)^power
struct polynomial {
  /// Finite values; power above 0; at least 0 steps.
  double from = 0, to = 0, power = 1;
  std::int64_t steps = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    if (t < 0) t = 0;
    return t < steps ? to + (from - to) * detail::power_of(double(steps - t) / double(steps), power) : to;
  }

  void check() const {
    detail::require_finite("polynomial", "from", from);
    detail::require_finite("polynomial", "to", to);
    detail::require_positive("polynomial", "power", power);
    detail::require_steps("polynomial", "steps", steps, 0);
  }
};
static_assert(schedule<polynomial>);

}  // namespace descent
