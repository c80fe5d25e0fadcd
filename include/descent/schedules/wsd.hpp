// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/anneal.hpp>

namespace descent {

/// Warmup, stable, decay (Hu et al. 2024, section 4): a linear rise to `peak`, whose first update uses 1 / warmup of
/// it; `peak` for `stable` steps; a fall to `floor` in `decay` steps; then `floor`. The first step of the fall still
/// has the value `peak`, x = 0.
///
///     linear       1 - x
///     cosine       (1 + cos(pi x)) / 2
///     sqrt         1 - sqrt(x)             (Haegele et al. 2024; llm.c, Megatron)
///     exponential  2 (1/2)^x - 1           (Megatron)
///
///     s(t) = floor + (peak - floor) f(x),  x = (t - warmup - stable) / decay
struct wsd {
  /// The form f of the fall.
  enum form { linear, cosine, sqrt, exponential };

  /// Finite values, of which peak must be given; warmup and stable at least 0 steps, decay at least 1.
  double peak = detail::not_given, floor = 0;
  std::int64_t warmup = 0, stable = 0, decay = 1;
  form tail = sqrt;

  DESCENT_HD double operator()(std::int64_t t) const {
    if (t < warmup) return peak * (double(t + 1) / double(warmup));
    std::int64_t const u = t - warmup - stable;
    if (u <= 0) return peak;
    return u < decay ? floor + (peak - floor) * left(double(u) / double(decay)) : floor;
  }
  /// f(x).
  DESCENT_HD double left(double x) const {
    switch (tail) {
      case linear: return 1 - x;
      case cosine: return detail::cosine_fall(x);
      case exponential: return 2 * descent::pow(0.5, x) - 1;
      default: return 1 - descent::sqrt(x);
    }
  }

  void check() const {
    detail::require_given("wsd", "peak", peak);
    detail::require_finite("wsd", "floor", floor);
    detail::require_steps("wsd", "warmup", warmup, 0);
    detail::require_steps("wsd", "stable", stable, 0);
    detail::require_steps("wsd", "decay", decay, 1);
  }
};
static_assert(schedule<wsd>);

}  // namespace descent
