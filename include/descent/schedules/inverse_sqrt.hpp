// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// Decay with the inverse square root of time: `peak` at step 0, half of it after 3 `steps`. After a warmup of as many
/// steps, this is the schedule of Megatron and fairseq: peak sqrt(steps / t) at step t of the whole. In
/// delayed{steps, ...} it is the schedule of T5.
///
///     s(t) = peak sqrt(steps / (t + steps))
struct inverse_sqrt {
  double peak = detail::not_given;
  std::int64_t steps = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    return peak * sqrt(double(steps) / (double(t) + double(steps)));
  }

  void check() const {
    detail::require_given("inverse_sqrt", "peak", peak);
    detail::require_steps("inverse_sqrt", "steps", steps, 1);
  }
};
static_assert(schedule<inverse_sqrt>);

}  // namespace descent
