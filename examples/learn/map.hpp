// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/chart.hpp"

#include <cmath>
#include <string>
#include <vector>

/// Paths on the contour lines of a loss of two weights.
namespace example::learn {

struct box { point low, high; };

/// Lifts the pen outside of the box.
inline std::vector<point> inside(box const& b, std::vector<point> line) {
  for (auto& p : line)
    if (p.x < b.low.x || p.x > b.high.x || p.y < b.low.y || p.y > b.high.y) p = {0, std::nan("")};
  return line;
}

/// A panel of the box with closed contour lines: contour(loss, angle) is the point of a line at an angle.
inline panel map_of(box const& b, std::string const& title, std::vector<double> const& losses, auto const& contour) {
  point const lift{0, std::nan("")};
  curve lines{"", {b.low, lift, b.high, lift}};
  lines.with = pen{grey, 0};
  for (double loss : losses) {
    std::vector<point> closed;
    for (int k = 0; k <= 720; ++k) closed.push_back(contour(loss, k * std::acos(-1) / 360));
    for (auto const& part : {inside(b, closed), {lift}})
      lines.points.insert(lines.points.end(), part.begin(), part.end());
  }
  return {title, "x", axis::linear, {lines}, x_axis::from_data, true, "y"};
}

}  // namespace example::learn
