// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/warmup.hpp>

#include <cstdint>

namespace example {

namespace ds = descent;

enum class schedule_shape { constant, linear, cosine, step };

/// A schedule chosen at run time. It is itself a schedule: a plain value that can be copied to the device. It falls
/// from `peak` to zero or, in steps, is divided by ten after each third.
struct falling {
  schedule_shape shape;
  double peak;
  std::int64_t steps;

  DESCENT_HD double operator()(std::int64_t t) const {
    switch (shape) {
      case schedule_shape::linear: return ds::linear{peak, 0, steps}(t);
      case schedule_shape::cosine: return ds::cosine{peak, 0, steps}(t);
      case schedule_shape::step: return ds::step{peak, 0.1, (steps + 2) / 3}(t);
      default: return ds::constant{peak}(t);
    }
  }
};

using rate_schedule = ds::warmup<falling>;
static_assert(ds::schedule<rate_schedule>);

}  // namespace example
