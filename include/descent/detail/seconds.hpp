// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>

namespace descent::detail {

/// A time for messages, with three digits and without its unit.
inline std::string seconds_of(std::chrono::nanoseconds d) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", std::chrono::duration<double>(d).count());
  return text;
}

/// The steady clock, by which deadlines pass. A test may put another in its place.
struct deadline_clock {
  using time_point = std::chrono::steady_clock::time_point;
  static inline std::atomic<time_point (*)()> source{[] { return std::chrono::steady_clock::now(); }};
  static time_point now() { return source.load(std::memory_order_relaxed)(); }
};

}  // namespace descent::detail
