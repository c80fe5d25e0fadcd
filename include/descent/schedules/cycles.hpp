// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/cosine.hpp>

/// One cycle or many, for a rate and the momentum opposite to it.
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
  std::int64_t length() const { return steps - 1; }  ///< see has_length

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
  std::int64_t length() const { return steps - 1; }  ///< see has_length

  void check() const {
    detail::require_fraction("one_cycle_momentum", "low", low);
    detail::require_fraction("one_cycle_momentum", "high", high);
    detail::check_cycle("one_cycle_momentum", steps, rise, three_phases);
  }
};
static_assert(schedule<one_cycle_momentum>);

/// How the height of a cyclic schedule changes: not at all; halved in each cycle; multiplied by gamma^t.
enum class cycles { triangular, triangular2, exp_range };

namespace detail {

/// The height, in [0, 1], of a cycle of up + down steps at step t.
DESCENT_HD inline double cycle_height(std::int64_t t, std::int64_t up, std::int64_t down, cycles mode, double gamma) {
  if (down == 0) down = up;
  std::int64_t const cycle = t / (up + down), u = t % (up + down);
  double const height = u <= up ? double(u) / double(up) : double(up + down - u) / double(down);
  switch (mode) {
    case cycles::triangular2: return height * power(0.5, cycle);
    case cycles::exp_range: return height * precise_power(gamma, t);
    default: return height;
  }
}
inline void check_cyclic(char const* name, std::int64_t up, std::int64_t down, double gamma) {
  constexpr std::int64_t most = std::int64_t{1} << 61;
  require(up >= 1 && up <= most, name, "up", "in [1, 2^61]", up);
  require(down >= 0 && down <= most, name, "down", "in [0, 2^61], where 0 means as many as up", down);
  require(gamma > 0 && gamma <= 1, name, "gamma", "in (0, 1]", gamma);
}

}  // namespace detail

/// Cyclical learning rates (Smith 2017): from `base` to `peak` in `up` steps and back in `down` steps (0 means as
/// many), repeatedly. Only exp_range uses `gamma`.
///
///     s(t) = base + (peak - base) h f,  h the height in the triangle, f = 1, 1 / 2^cycle or gamma^t
struct cyclic {
  /// Finite values; up at least 1 and down at least 0 steps; gamma in (0, 1].
  double base = 0, peak = 0;
  std::int64_t up = 2000, down = 0;
  cycles mode = cycles::triangular;
  double gamma = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    return base + (peak - base) * detail::cycle_height(t, up, down, mode, gamma);
  }
  std::int64_t length() const { return endless; }  ///< see has_length

  void check() const {
    detail::require_finite("cyclic", "base", base);
    detail::require_finite("cyclic", "peak", peak);
    detail::check_cyclic("cyclic", up, down, gamma);
  }
};
static_assert(schedule<cyclic>);

/// The momentum (or beta1) for a cyclic rate: `high` where the rate is lowest.
struct cyclic_momentum {
  /// Values in [0, 1); the others as in cyclic.
  double low = 0.8, high = 0.9;
  std::int64_t up = 2000, down = 0;
  cycles mode = cycles::triangular;
  double gamma = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    return high - (high - low) * detail::cycle_height(t, up, down, mode, gamma);
  }
  std::int64_t length() const { return endless; }  ///< see has_length

  void check() const {
    detail::require_fraction("cyclic_momentum", "low", low);
    detail::require_fraction("cyclic_momentum", "high", high);
    detail::check_cyclic("cyclic_momentum", up, down, gamma);
  }
};
static_assert(schedule<cyclic_momentum>);

/// ensmallen's CyclicalDecay, with its defaults. Its counters count updates, despite their names. A second counter
/// triggers the restarts, so the rate is also constant for some time:
///
///     initial                                       up to update E_0, E_i = restart multiplier^i
///     initial (1 + cos(pi b / period)) / 2          b = 0, 1, ... from E_i or, if later, the end of the cycle before,
///                                                   to N_i = E_0 + ... + E_i
///     the last value                                from there to the next cycle
///
/// It computes a step size for the next update, so step t has what it computes at t - 1. For SGDR use cosine_restarts.
struct cyclical_decay {
  /// A finite rate, which must be given; restart, multiplier at least 1; period above 0.
  double initial = detail::not_given;
  std::int64_t restart = 50, multiplier = 2;
  double period = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    if (t <= restart) return initial;
    std::int64_t const u = t - 1;
    std::int64_t first = restart, last = restart + 1;  // of cycle 0
    if (multiplier == 1 && u > last) {
      first = 2 + (u - 2) / restart * restart, last = u;
    } else if (multiplier > 1) {
      std::int64_t length = restart;
      while (length <= u / multiplier) {  // at most 62 times
        length *= multiplier;
        std::int64_t const start = last + 1 > length ? last + 1 : length;
        if (start > u) break;
        first = start;
        last = last > u - length ? u : last + length;  // beyond u the exact value does not matter
      }
    }
    return initial * detail::cosine_wave(double((u < last ? u : last) - first) / period);
  }
  std::int64_t length() const { return endless; }  ///< see has_length

  void check() const {
    detail::require_given("cyclical_decay", "initial", initial);
    detail::require_steps("cyclical_decay", "restart", restart, 1);
    detail::require_steps("cyclical_decay", "multiplier", multiplier, 1);
    detail::require_positive("cyclical_decay", "period", period);
  }
};
static_assert(schedule<cyclical_decay>);

}  // namespace descent
