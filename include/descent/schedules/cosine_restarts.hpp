// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/anneal.hpp>

namespace descent {

/// Cosine annealing with warm restarts, SGDR (Loshchilov & Hutter 2017, eq. 5): from `peak` towards `floor` in `steps`
/// steps, then from the peak again in `multiplier` times as many. Each restart multiplies peak - floor by `decay`. A
/// cycle does not reach `floor`: the step that would reach it is the restart.
///
///     s(t) = floor + decay^i (peak - floor) (1 + cos(pi u / T)) / 2     at step u of cycle i, T = steps multiplier^i
struct cosine_restarts {
  double peak = detail::not_given, floor = 0;
  std::int64_t steps = 1, multiplier = 1;
  double decay = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    std::int64_t length = steps, cycle = 0;
    if (multiplier == 1) cycle = t / steps, t %= steps;
    for (; t >= length; ++cycle) {  // at most 62 times
      t -= length;
      length = length > (std::int64_t{1} << 62) / multiplier ? std::int64_t{1} << 62 : length * multiplier;
    }
    double const top = decay == 1 ? peak : floor + precise_power(decay, cycle) * (peak - floor);
    return detail::between(top, floor, double(t) / double(length), anneal::cosine);
  }

  void check() const {
    detail::require_given("cosine_restarts", "peak", peak);
    detail::require_finite("cosine_restarts", "floor", floor);
    detail::require_steps("cosine_restarts", "steps", steps, 1);
    detail::require_steps("cosine_restarts", "multiplier", multiplier, 1);
    detail::require(decay > 0 && decay <= 1, "cosine_restarts", "decay", "in (0, 1]", decay);
  }
};
static_assert(schedule<cosine_restarts>);

}  // namespace descent
