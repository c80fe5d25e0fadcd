// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// A straight line: `from` at step 0, `to` from step `steps` on. With 0 steps, `to` from the start.
///
///     s(t) = from + (to - from) min(t, steps) / steps
struct linear {
  double from = 0, to = 0;
  std::int64_t steps = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    return t < steps ? from + (to - from) * (double(t) / double(steps)) : to;
  }

  void check() const {
    detail::require_finite("linear", "from", from);
    detail::require_finite("linear", "to", to);
    detail::require_steps("linear", "steps", steps, 0);
  }
};
static_assert(schedule<linear>);

}  // namespace descent
