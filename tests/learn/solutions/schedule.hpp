// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

#include <cmath>
#include <cstdint>
#include <numbers>

struct warmup_then_cosine {
  double peak = 1, floor = 0;
  std::int64_t warmup = 10, steps = 100;

  DESCENT_HD double operator()(std::int64_t t) const {
    if (t < warmup) return peak * double(t + 1) / double(warmup);
    if (t >= steps) return floor;
    return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * double(t - warmup) / double(steps - warmup))) / 2;
  }
};
static_assert(descent::schedule<warmup_then_cosine>);
