// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>

namespace descent::detail {

/// A duration for messages, in seconds with three digits, without the unit.
inline std::string seconds_of(std::chrono::nanoseconds d) {
  return printed("%.3g", std::chrono::duration<double>(d).count());
}

/// Longer waits are cut to this. It is practically infinite and can be added to any time point without overflow.
inline constexpr std::chrono::nanoseconds longest_wait = std::chrono::hours(24 * 365 * 100);
inline std::chrono::nanoseconds cut_wait(std::chrono::nanoseconds d) { return d < longest_wait ? d : longest_wait; }

/// Cuts a wait that the caller asks for. Throws std::invalid_argument unless it is above 0.
inline std::chrono::nanoseconds checked_wait(std::string const& who, std::string const& what,
                                             std::chrono::nanoseconds d) {
  if (d <= std::chrono::nanoseconds(0))
    throw std::invalid_argument(who + ": the " + what + " must be above 0, is " + seconds_of(d) + " s");
  return cut_wait(d);
}

/// The clock of all deadlines: the steady clock, which tests may replace.
struct deadline_clock {
  using time_point = std::chrono::steady_clock::time_point;
  static inline std::atomic<time_point (*)()> source{[] { return std::chrono::steady_clock::now(); }};
  static time_point now() { return source.load(std::memory_order_relaxed)(); }
};

}  // namespace descent::detail
