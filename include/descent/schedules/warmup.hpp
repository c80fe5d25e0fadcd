// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/anneal.hpp>

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
  enum form { linear, cosine, exponential, logarithmic };
  enum offset { past_start, at_start };

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

  void check() const {
    detail::require_steps("warmup", "steps", steps, 0);
    detail::require(shape != logarithmic || steps != 1, "warmup", "steps", "0 or at least 2 if logarithmic", steps);
    detail::require_nonnegative("warmup", "from", from);
    detail::require(shape != exponential || from > 0, "warmup", "from", "above 0 if exponential", from);
    detail::check_schedule(then);
  }
};

}  // namespace descent
