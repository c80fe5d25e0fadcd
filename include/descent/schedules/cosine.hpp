// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

/// Annealing along half a cosine, once, back and forth, or with restarts.
namespace descent {

/// The shape of a transition from one value to another.
enum class anneal { linear, cosine };

namespace detail {

/// (1 - cos(pi x)) / 2 = sin^2(pi x / 2) for 0 <= x <= 1/2, by the series of the sine up to y^17 / 17!. Accurate to 3
/// ulp, with the same bits on every host and device, which a library's cosine does not promise.
DESCENT_HD inline double haversine(double x) {
  double const y = x * 1.57079632679489661923, yy = y * y;
  double sum = 1;
  for (int k = 8; k > 0; --k) sum = 1 - sum * (yy * (1.0 / (2 * k * (2 * k + 1))));
  return (y * sum) * (y * sum);
}

/// (1 + cos(pi x)) / 2 for 0 <= x <= 1: exactly 1 at 0 and 0 at 1, and without cancellation near 1.
DESCENT_HD inline double cosine_fall(double x) { return x <= 0.5 ? 1 - haversine(x) : haversine(1 - x); }

/// The same for every x >= 0: it rises again after 1 and falls again after 2.
DESCENT_HD inline double cosine_wave(double x) {
  double const part = x - 2 * ::floor(x / 2);
  return cosine_fall(part <= 1 ? part : 2 - part);
}

/// From `from` at x = 0 to `to` at x = 1, both exactly.
DESCENT_HD inline double between(double from, double to, double x, anneal shape) {
  if (shape == anneal::linear) return x < 1 ? from + (to - from) * x : to;
  return x <= 0.5 ? from + (to - from) * haversine(x) : to + (from - to) * haversine(1 - x);
}

}  // namespace detail

/// Cosine annealing (Loshchilov & Hutter 2017, eq. 5) without restarts: `peak` at step 0, `floor` at `steps`. Then it
/// stays at `floor` or, with `after = swing`, swings up to `peak` and back, as in PyTorch's CosineAnnealingLR.
///
///     s(t) = floor + (peak - floor) ((1 + cos(pi t / steps)) / 2)^exponent
struct cosine {
  /// What follows at step `steps`.
  enum end : int { hold, swing };

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
  std::int64_t length() const { return after == hold ? steps : endless; }  ///< see has_length

  void check() const {
    detail::require_given("cosine", "peak", peak);
    detail::require_finite("cosine", "floor", floor);
    detail::require_steps("cosine", "steps", steps, 1);
    detail::require_positive("cosine", "exponent", exponent);
  }
};
static_assert(schedule<cosine>);

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
  std::int64_t length() const { return endless; }  ///< see has_length

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
