// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/anneal.hpp>

namespace descent {

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

  void check() const {
    detail::check_schedule(before);
    detail::require_steps("swa_rate", "begin", begin, 0);
    detail::require_finite("swa_rate", "rate", rate);
    detail::require_steps("swa_rate", "steps", steps, 0);
  }
};

}  // namespace descent
