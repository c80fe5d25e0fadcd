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

/// The scale of a panel's vertical axis. `nines` is for percentages that approach 100: 0, 90, 99, 99.9, ... are equally
/// far apart.
enum class axis { linear, logarithmic, nines };

struct panel {
  std::string title, x_label;
  axis scale;
  std::vector<curve> curves;
};

/// Draws an SVG picture: panels side by side above one legend, in which equal names have equal colours. Omits points
/// that the scale cannot show (not finite, or not positive on a logarithmic axis).
std::string draw(std::string const& title, std::vector<panel> const& panels);

}  // namespace example
