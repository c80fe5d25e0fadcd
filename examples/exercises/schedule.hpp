// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 8: a schedule.
//
// Write the learning rate as a function of the number of updates so far, t = 0, 1, 2, ...: a linear warm-up to `peak`,
// then half a cosine down to `floor`, where it stays.
//
//     peak (t + 1) / warmup                                                        t < warmup
//     floor + (peak - floor) (1 + cos(pi (t - warmup) / (steps - warmup))) / 2     warmup <= t < steps
//     floor                                                                        t >= steps
//
// Hint: t and steps are integers; make a double before you divide.
#pragma once

#include <descent/core/schedule.hpp>

#include <cmath>
#include <cstdint>
#include <numbers>

struct warmup_then_cosine {
  double peak = 1, floor = 0;
  std::int64_t warmup = 10, steps = 100;

  DESCENT_HD double operator()(std::int64_t t) const {
    return peak;  // your lines
  }
};
static_assert(descent::schedule<warmup_then_cosine>);
