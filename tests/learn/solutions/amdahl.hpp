// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

inline double speedup(std::vector<double> const& seconds, std::vector<double> const& faster) {
  double before = 0, after = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    before += seconds[i];
    after += seconds[i] / faster[i];
  }
  return before / after;
}
