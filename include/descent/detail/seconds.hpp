// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

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

}  // namespace descent::detail
