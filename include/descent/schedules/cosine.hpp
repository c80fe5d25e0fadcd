// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/anneal.hpp>

namespace descent {

/// Cosine annealing (Loshchilov & Hutter 2017, eq. 5) without restarts: `peak` at step 0, `floor` at `steps`. Then it
/// stays at `floor` or, with `after = swing`, swings up to `peak` and back, as in PyTorch's CosineAnnealingLR.
///
///     s(t) = floor + (peak - floor) ((1 + cos(pi t / steps)) / 2)^exponent
struct cosine {
  /// What follows at step `steps`.
  enum end { hold, swing };

  /// Finite values, of which peak must be given; at least 1 step; exponent above 0.
  double peak = detail::not_given, floor = 0;
  std::int64_t steps = 0;
  double exponent = 1;
  end after = hold;

  DESCENT_HD double operator()(std::int64_t t) const {
    if (t >= steps && after == hold) return floor;
    bool const up = t / steps % 2 == 1;
    double const x = double(up ? steps - t % steps : t % steps) / double(steps);
    if (exponent != 1) return floor + (peak - floor) * detail::power_of(detail::cosine_fall(x), exponent);
    return detail::between(peak, floor, x, anneal::cosine);
  }

  void check() const {
    detail::require_given("cosine", "peak", peak);
    detail::require_finite("cosine", "floor", floor);
    detail::require_steps("cosine", "steps", steps, 1);
    detail::require_positive("cosine", "exponent", exponent);
  }
};
static_assert(schedule<cosine>);

}  // namespace descent
