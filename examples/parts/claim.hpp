// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>

namespace example {

/// A claim that an example demonstrates. If it does not hold, the program fails with this sentence.
inline void claim(bool holds, std::string const& sentence) {
  if (!holds) throw std::runtime_error("does not hold: " + sentence);
}

inline bool close(double got, double want, double relative, double absolute = 0) {
  return std::fabs(got - want) <= absolute + relative * std::fabs(want);
}

}  // namespace example
