// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/anneal.hpp>

namespace descent {

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

  void check() const {
    detail::require_given("cyclical_decay", "initial", initial);
    detail::require_steps("cyclical_decay", "restart", restart, 1);
    detail::require_steps("cyclical_decay", "multiplier", multiplier, 1);
    detail::require_positive("cyclical_decay", "period", period);
  }
};
static_assert(schedule<cyclical_decay>);

}  // namespace descent
