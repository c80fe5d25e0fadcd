// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/cosine.hpp>

/// Ramps: before a schedule, at both ends of a constant, and after a schedule.
namespace descent {

/// A rise over `steps` steps from the fraction `from` of the first value of `then` to all of it (a fall if `from` is
/// above 1). Then `then` follows from its own step 0 (Goyal et al. 2017, section 2.2). The fraction is r(x) with
/// x = (t + 1) / steps at step t: the first update already uses a part, and update number `steps` all. With
/// `first = at_start`, x = t / steps: the first update uses `from` (0 by default, so nothing moves), as in PyTorch,
/// optax and Megatron. With 0 steps there is no warmup.
///
///     s(t) = then(0) r(x)       for t < steps
///     s(t) = then(t - steps)    afterwards
///
///     linear       r(x) = from + (1 - from) x
///     cosine       r(x) = from + (1 - from) (1 - cos(pi x)) / 2
///     exponential  r(x) = from^(1 - x)
///     logarithmic  r(t) = from + (1 - from) ln(t + 1) / ln(steps)     DeepSpeed's: from at step 0, 1 at steps - 1
template <class Then> struct warmup {
  static_assert(schedule<Then>, "warmup<S>: S must be a schedule, 'double operator()(std::int64_t step) const'");
  /// The form of r, and whether x is above 0 at step 0.
  enum form : int { linear, cosine, exponential, logarithmic };
  enum offset : int { past_start, at_start };

  /// At least 0 steps (not 1 if logarithmic); from at least 0, above 0 if exponential.
  std::int64_t steps = 0;
  Then then{};
  form shape = linear;
  double from = 0;
  offset first = past_start;

  DESCENT_HD double operator()(std::int64_t t) const { return t < steps ? then(0) * rise(t) : then(t - steps); }
  /// The fraction at step t < steps.
  DESCENT_HD double rise(std::int64_t t) const {
    double const x = double(first == past_start ? t + 1 : t) / double(steps);
    switch (shape) {
      case cosine: return detail::between(from, 1, x, anneal::cosine);
      case exponential: return descent::pow(from, 1 - x);
      case logarithmic: return from + (1 - from) * (::log(double(t) + 1) / ::log(double(steps)));
      default: return from + (1 - from) * x;
    }
  }
  /// See has_length.
  std::int64_t length() const requires has_length<Then> { return detail::later(steps, then.length()); }

  void check() const {
    detail::require_steps("warmup", "steps", steps, 0);
    detail::require(shape != logarithmic || steps != 1, "warmup", "steps", "0 or at least 2 if logarithmic", steps);
    detail::require_nonnegative("warmup", "from", from);
    detail::require(shape != exponential || from > 0, "warmup", "from", "above 0 if exponential", from);
    detail::check_schedule(then);
  }
};

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
  enum form : int { linear, cosine, sqrt, exponential };

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
  std::int64_t length() const { return detail::later(warmup, detail::later(stable, decay)); }  ///< see has_length

  void check() const {
    detail::require_given("wsd", "peak", peak);
    detail::require_finite("wsd", "floor", floor);
    detail::require_steps("wsd", "warmup", warmup, 0);
    detail::require_steps("wsd", "stable", stable, 0);
    detail::require_steps("wsd", "decay", decay, 1);
  }
};
static_assert(schedule<wsd>);

/// The learning rate of stochastic weight averaging (Izmailov et al. 2018; torch.optim.swa_utils.SWALR): follows
/// another schedule up to step `begin`, then goes from its value there to `rate` in `steps` steps (at once if 0).
///
///     s(t) = before(t)                                for t < begin
///     s(t) = from before(begin) to rate at x          x = min(1, (t - begin) / steps)
template <class Before> struct swa_rate {
  static_assert(schedule<Before>, "swa_rate<S>: S must be a schedule, 'double operator()(std::int64_t step) const'");

  /// The schedule before; begin and steps at least 0; a finite rate.
  Before before{};
  std::int64_t begin = 0;
  double rate = 0;
  std::int64_t steps = 10;
  anneal shape = anneal::cosine;

  DESCENT_HD double operator()(std::int64_t t) const {
    if (t < begin) return before(t);
    double const x = t - begin < steps ? double(t - begin) / double(steps) : 1;
    return detail::between(before(begin), rate, x, shape);
  }
  std::int64_t length() const { return detail::later(begin, steps); }  ///< see has_length

  void check() const {
    detail::check_schedule(before);
    detail::require_steps("swa_rate", "begin", begin, 0);
    detail::require_finite("swa_rate", "rate", rate);
    detail::require_steps("swa_rate", "steps", steps, 0);
  }
};

}  // namespace descent
