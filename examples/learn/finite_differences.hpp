// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace example::learn {

/// The largest difference between a gradient and central differences of loss(), over every n-th of the values.
inline double largest_difference(std::vector<double>& values, std::vector<double> const& gradient, auto const& loss,
                                 std::size_t n) {
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); i += n) {
    double const at = values[i], h = 1e-5;
    values[i] = at + h;
    double const above = loss();
    values[i] = at - h;
    double const below = loss();
    values[i] = at;
    worst = std::max(worst, std::fabs(gradient[i] - (above - below) / (2 * h)));
  }
  return worst;
}

}  // namespace example::learn
