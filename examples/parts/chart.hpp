// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace example {

struct point { double x, y; };

struct curve {
  std::string name;
  std::vector<point> points;
  std::vector<point> marks = {};  ///< circles
};

/// How the vertical axis of a panel is divided. `nines` is for percentages that approach 100: equal
/// distances for 0, 90, 99, 99.9, ...
enum class axis { linear, logarithmic, nines };

struct panel {
  std::string title, x_label;
  axis scale;
  std::vector<curve> curves;
};

/// A picture in SVG: panels side by side, over one legend, in which equal names have equal colours.
/// Points that the scale cannot show (not finite, or not positive on a logarithmic axis) are left
/// out.
std::string draw(std::string const& title, std::vector<panel> const& panels);

}  // namespace example
