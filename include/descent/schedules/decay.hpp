// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

/// A constant, and what goes from one value towards another: straight, in stairs, or along a power.
namespace descent {

/// The same value at every step.
struct constant {
  /// Finite.
  double value = 0;

  DESCENT_HD double operator()(std::int64_t) const { return value; }
  std::int64_t length() const { return 0; }  ///< see has_length

  void check() const { detail::require_finite("constant", "value", value); }
};
static_assert(schedule<constant>);

/// A straight line: `from` at step 0, `to` from step `steps` on. With 0 steps, `to` from the start.
///
///     s(t) = from + (to - from) min(t, steps) / steps
struct linear {
  double from = 0, to = 0;
  std::int64_t steps = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    return t < steps ? from + (to - from) * (double(t) / double(steps)) : to;
  }
  std::int64_t length() const { return steps; }  ///< see has_length

  void check() const {
    detail::require_finite("linear", "from", from);
    detail::require_finite("linear", "to", to);
    detail::require_steps("linear", "steps", steps, 0);
  }
};
static_assert(schedule<linear>);

/// Polynomial decay: `from` at step 0, `to` from step `steps` on. With 0 steps, `to` from the start.
///
///     s(t) = to + (from - to) (1 - min(t, steps) / steps)^power
struct polynomial {
  /// Finite values; power above 0; at least 0 steps.
  double from = 0, to = 0, power = 1;
  std::int64_t steps = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    if (t < 0) t = 0;
    return t < steps ? to + (from - to) * detail::power_of(double(steps - t) / double(steps), power) : to;
  }
  std::int64_t length() const { return steps; }  ///< see has_length

  void check() const {
    detail::require_finite("polynomial", "from", from);
    detail::require_finite("polynomial", "to", to);
    detail::require_positive("polynomial", "power", power);
    detail::require_steps("polynomial", "steps", steps, 0);
  }
};
static_assert(schedule<polynomial>);

/// A staircase: multiplied by `factor` every `every` steps.
///
///     s(t) = initial factor^floor(t / every)
struct step {
  /// A finite initial value, which must be given; factor above 0; every at least 1.
  double initial = detail::not_given, factor = 0.1;
  std::int64_t every = 1;

  DESCENT_HD double operator()(std::int64_t t) const { return detail::decayed(initial, factor, t / every); }
  std::int64_t length() const { return endless; }  ///< see has_length

  void check() const {
    detail::require_given("step", "initial", initial);
    detail::require_positive("step", "factor", factor);
    detail::require_steps("step", "every", every, 1);
  }
};
static_assert(schedule<step>);

/// A staircase with stairs of any length: multiplied by `factor` at each of the N steps in `at`. They must not
/// decrease; a step that is listed twice counts twice.
///
///     s(t) = initial factor^k,  k = the number of entries of at that are <= t
template <std::size_t N> struct multi_step {
  static_assert(N >= 1 && N <= 256, "multi_step<N>: N must be 1 to 256: kernels take it by value");
  /// A finite initial value, which must be given; factor above 0; steps of at least 1, not decreasing.
  double initial = detail::not_given, factor = 0.1;
  std::int64_t at[N] = {};

  DESCENT_HD double operator()(std::int64_t t) const {
    std::int64_t passed = 0;
    for (std::size_t i = 0; i < N; ++i) passed += at[i] <= t;
    return detail::decayed(initial, factor, passed);
  }
  std::int64_t length() const { return at[N - 1]; }  ///< see has_length

  void check() const {
    detail::require_given("multi_step", "initial", initial);
    detail::require_positive("multi_step", "factor", factor);
    detail::require_order("multi_step", "at", at, false);
  }
};
static_assert(schedule<multi_step<2>>);

/// A staircase with a begin and an end, as tiny-cuda-nn's ExponentialDecay, with its defaults: multiplied by `factor`
/// at step `begin` and then every `every` steps, up to and including step `end`.
///
///     s(t) = initial factor^k,  k = 1 + floor((min(t, end) - begin) / every) for t >= begin, else 0
struct interval_decay {
  /// A finite initial value, which must be given; factor above 0; every at least 1; 0 <= begin <= end.
  double initial = detail::not_given, factor = 0.1;
  std::int64_t every = 10000, begin = 10000, end = 10000000;

  DESCENT_HD double operator()(std::int64_t t) const {
    if (t > end) t = end;
    return t < begin ? initial : detail::decayed(initial, factor, 1 + (t - begin) / every);
  }
  std::int64_t length() const { return begin + (end - begin) / every * every; }  ///< see has_length

  void check() const {
    detail::require_given("interval_decay", "initial", initial);
    detail::require_positive("interval_decay", "factor", factor);
    detail::require_steps("interval_decay", "every", every, 1);
    detail::require_steps("interval_decay", "begin", begin, 0);
    detail::require_least("interval_decay", "end", "begin", begin, end);
    detail::require_steps("interval_decay", "end", end, 0);
  }
};
static_assert(schedule<interval_decay>);

/// Exponential decay, or growth if `factor` is above 1: multiplied by `factor` over every `steps` steps, evenly or,
/// with `staircase`, at their end. `limit`, if set, is the lowest value of a decay or the highest of a growth.
///
///     s(t) = initial factor^(t / steps)
struct exponential {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();  ///< no limit

  /// A finite initial value, which must be given; factor above 0; at least 1 step; limit finite or none.
  double initial = detail::not_given, factor = 1;
  std::int64_t steps = 1;
  bool staircase = false;
  double limit = none;

  DESCENT_HD double operator()(std::int64_t t) const {
    double value = detail::decayed(initial, factor, t / steps);
    if (!staircase && t % steps != 0) value *= descent::pow(factor, double(t % steps) / double(steps));
    if (is_nan(limit)) return value;
    return (factor < 1 ? value < limit : value > limit) ? limit : value;
  }
  std::int64_t length() const { return endless; }  ///< see has_length

  void check() const {
    detail::require_given("exponential", "initial", initial);
    detail::require_positive("exponential", "factor", factor);
    detail::require_steps("exponential", "steps", steps, 1);
    if (!is_nan(limit)) detail::require(is_finite(limit), "exponential", "limit", "finite, or NaN for no limit", limit);
  }
};
static_assert(schedule<exponential>);

/// Decay with the inverse of time (Robbins & Monro 1951): divided by 1 + rate after `steps` steps and by 1 + 2 rate
/// after twice as many; with `staircase` only at their end. Its sum is infinite, but that of its squares is not.
///
///     s(t) = initial / (1 + rate t / steps)
struct inverse_time {
  /// A finite initial value, which must be given; rate at least 0; at least 1 step.
  double initial = detail::not_given, rate = 1;
  std::int64_t steps = 1;
  bool staircase = false;

  DESCENT_HD double operator()(std::int64_t t) const {
    double const x = staircase ? double(t / steps) : double(t) / double(steps);
    return initial / (1 + rate * x);
  }
  std::int64_t length() const { return endless; }  ///< see has_length

  void check() const {
    detail::require_given("inverse_time", "initial", initial);
    detail::require_nonnegative("inverse_time", "rate", rate);
    detail::require_steps("inverse_time", "steps", steps, 1);
  }
};
static_assert(schedule<inverse_time>);

/// Decay with the inverse square root of time: `peak` at step 0, half of it after 3 `steps`. After a warmup of as many
/// steps, this is the schedule of Megatron and fairseq: peak sqrt(steps / t) at step t of the whole. In
/// delayed{steps, ...} it is the schedule of T5.
///
///     s(t) = peak sqrt(steps / (t + steps))
struct inverse_sqrt {
  double peak = detail::not_given;
  std::int64_t steps = 1;

  DESCENT_HD double operator()(std::int64_t t) const {
    return peak * sqrt(double(steps) / (double(t) + double(steps)));
  }
  std::int64_t length() const { return endless; }  ///< see has_length

  void check() const {
    detail::require_given("inverse_sqrt", "peak", peak);
    detail::require_steps("inverse_sqrt", "steps", steps, 1);
  }
};
static_assert(schedule<inverse_sqrt>);

/// The schedule of the transformer (Vaswani et al. 2017, eq. 3), which counts steps from 1: a linear rise over `warmup`
/// steps, then decay with the inverse square root. Its peak is scale / sqrt(d_model warmup), at step warmup - 1 here.
///
///     s(t) = scale d_model^(-1/2) min(n^(-1/2), n warmup^(-3/2)),  n = t + 1
struct noam {
  /// A finite scale; the model's width d_model above 0; warmup of at least 1 step.
  double scale = 1, d_model = 512;
  std::int64_t warmup = 4000;

  DESCENT_HD double operator()(std::int64_t t) const {
    double const n = double(t) + 1, W = double(warmup);
    return scale / sqrt(d_model) * (n < W ? n / (W * sqrt(W)) : 1 / sqrt(n));
  }
  std::int64_t length() const { return endless; }  ///< see has_length

  void check() const {
    detail::require_finite("noam", "scale", scale);
    detail::require_positive("noam", "d_model", d_model);
    detail::require_steps("noam", "warmup", warmup, 1);
  }
};
static_assert(schedule<noam>);

}  // namespace descent
