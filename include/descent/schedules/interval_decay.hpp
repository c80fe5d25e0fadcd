// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

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

}  // namespace descent
