// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 19: how much faster a step is.
//
// The parts of a step take `seconds`, and part i becomes `faster[i]` times as fast, at least 1. Return by what factor
// the whole step becomes faster.
//
//     sum of seconds_i / sum of (seconds_i / faster_i)
//
// Hint: what is not faster limits the result: with a part of 10 % left as it is, no more than 10 (Amdahl 1967).
#pragma once

#include <cstddef>
#include <vector>

inline double speedup(std::vector<double> const& seconds, std::vector<double> const& faster) {
  return 0;  // your lines
}
