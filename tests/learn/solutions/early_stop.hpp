// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

inline std::size_t kept_epoch(std::vector<double> const& losses, std::size_t patience) {
  std::size_t best = 0;
  for (std::size_t e = 1; e < losses.size(); ++e) {
    if (losses[e] < losses[best]) best = e;
    else if (e - best >= patience) break;
  }
  return best;
}
