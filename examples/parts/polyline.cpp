// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "polyline.hpp"

#include <cmath>
#include <cstddef>

namespace example {
namespace {

void simplify(polyline const& all, std::size_t first, std::size_t last, double tolerance, polyline& kept) {
  point const a = all[first], b = all[last];
  double const length = std::hypot(b.x - a.x, b.y - a.y);
  double farthest = 0;
  std::size_t where = first;
  for (std::size_t i = first + 1; i < last; ++i) {
    double const x = all[i].x - a.x, y = all[i].y - a.y;
    // the distance from the segment or, for a closed line, from its end
    double const along = length > 0 ? std::fmin(std::fmax((x * (b.x - a.x) + y * (b.y - a.y)) / length, 0), length) : 0;
    double const off =
        length > 0 ? std::hypot(x - along * (b.x - a.x) / length, y - along * (b.y - a.y) / length) : std::hypot(x, y);
    if (off > farthest) farthest = off, where = i;
  }
  if (farthest > tolerance) {
    simplify(all, first, where, tolerance, kept);
    simplify(all, where, last, tolerance, kept);
  } else {
    kept.push_back(b);
  }
}

}  // namespace

polyline simplified(polyline const& all, double tolerance) {
  if (all.size() < 2) return all;
  polyline kept{all.front()};
  simplify(all, 0, all.size() - 1, tolerance, kept);
  return kept;
}

}  // namespace example
