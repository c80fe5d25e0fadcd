// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/anneal.hpp>

namespace descent {

namespace detail {

/// The phase that step t is in, and the fraction of it that has passed.
struct cycle_place {
  int phase;
  double x;
};
DESCENT_HD inline cycle_place place_in_cycle(std::int64_t t, std::int64_t steps, double rise, bool three_phases) {
  double const T = double(steps), last = T - 1, at = descent::min(double(t), last);
  double const ends[] = {rise * T - 1, three_phases ? 2 * rise * T - 2 : last, last};
  int phase = 0;
  double start = 0;
  while (at > ends[phase] && phase < (three_phases ? 2 : 1)) start = ends[phase++];
  return {phase, ends[phase] > start ? (at - start) / (ends[phase] - start) : 1};
}
inline void check_cycle(char const* name, std::int64_t steps, double rise, bool three_phases) {
  require_steps(name, "steps", steps, 1);
  require(rise >= 0 && rise <= (three_phases ? 0.5 : 1), name, "rise",
          three_phases ? "in [0, 0.5] with three phases" : "in [0, 1]", rise);
}

}  // namespace detail

/// One cycle (Smith & Topin 2019) as PyTorch's OneCycleLR, with its defaults: up from peak / start_div to `peak` in the
/// fraction `rise` of the steps, down to the start value divided by end_div at step steps - 1, and constant from there.
/// With `three_phases` it first goes down to the start value, in as many steps as up, and then to the end value.
///
///     phases end at rise steps - 1, (2 rise steps - 2,) steps - 1
struct one_cycle {
  /// A finite peak, which must be given; steps at least 1; rise in [0, 1], [0, 1/2] with three_phases; divisors > 0.
  double peak = detail::not_given;
  std::int64_t steps = 0;
  double rise = 0.3, start_div = 25, end_div = 1e4;
  anneal shape = anneal::cosine;
  bool three_phases = false;

  DESCENT_HD double operator()(std::int64_t t) const {
    double const start = peak / start_div, end = start / end_div;
    detail::cycle_place const p = detail::place_in_cycle(t, steps, rise, three_phases);
    double const to = p.phase == 0 ? peak : p.phase == 1 && three_phases ? start : end;
    return detail::between(p.phase == 1 ? peak : start, to, p.x, shape);
  }

  void check() const {
    detail::require_given("one_cycle", "peak", peak);
    detail::check_cycle("one_cycle", steps, rise, three_phases);
    detail::require_positive("one_cycle", "start_div", start_div);
    detail::require_positive("one_cycle", "end_div", end_div);
  }
};
static_assert(schedule<one_cycle>);

/// The momentum (or beta1) for one_cycle: it falls while the rate rises, rises while it falls, then stays at `high`.
struct one_cycle_momentum {
  /// Values in [0, 1); the others as in one_cycle.
  double low = 0.85, high = 0.95;
  std::int64_t steps = 1;
  double rise = 0.3;
  anneal shape = anneal::cosine;
  bool three_phases = false;

  DESCENT_HD double operator()(std::int64_t t) const {
    detail::cycle_place const p = detail::place_in_cycle(t, steps, rise, three_phases);
    if (p.phase == 2) return high;
    return detail::between(p.phase == 0 ? high : low, p.phase == 0 ? low : high, p.x, shape);
  }

  void check() const {
    detail::require_fraction("one_cycle_momentum", "low", low);
    detail::require_fraction("one_cycle_momentum", "high", high);
    detail::check_cycle("one_cycle_momentum", steps, rise, three_phases);
  }
};
static_assert(schedule<one_cycle_momentum>);

}  // namespace descent
