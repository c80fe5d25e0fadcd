// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/schedule.hpp>

namespace descent {

/// Cosine annealing (Loshchilov & Hutter 2017, eq. 5), once: `peak` at step 0, `floor` from `steps` on.
///
///     s(t) = floor + (peak - floor) (1 + cos(pi t / steps)) / 2
struct cosine {
  double peak = 0, floor = 0;
  std::int64_t steps = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    constexpr double pi = 3.14159265358979323846;
    return t < steps ? floor + (peak - floor) * 0.5 * (1 + ::cos(pi * (double(t) / double(steps)))) : floor;
  }
};
static_assert(schedule<cosine>);

}  // namespace descent
