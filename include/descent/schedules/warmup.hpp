// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/schedule.hpp>

namespace descent {

/// A linear rise over `steps` steps to the first value of `then`, which follows from its own step 0 (Goyal et al.
/// 2017, section 2.2). The first update already uses 1 / steps of it, and update `steps` all of it.
///
///     s(t) = then(0) (t + 1) / steps      for t < steps
///     s(t) = then(t - steps)              afterwards
template <class Then> struct warmup {
  static_assert(schedule<Then>, "warmup<S>: S must be a schedule, 'double operator()(std::int64_t step) const'");
  std::int64_t steps = 0;
  Then then{};

  DESCENT_HD double operator()(std::int64_t t) const {
    return t < steps ? then(0) * (double(t + 1) / double(steps)) : then(t - steps);
  }
};

}  // namespace descent
