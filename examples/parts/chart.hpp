// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace example {

struct point { double x, y; };

/// An error bar.
struct bar { double x, low, high; };

/// A colour and a dash of the chart; the numbers go round.
struct pen { std::size_t colour, dash; };

struct curve {
  std::string name;
  std::vector<point> points;
  std::vector<point> marks = {};  ///< circles
  std::vector<bar> bars = {};
  std::optional<pen> with = {};  ///< otherwise a pen for each name
};

/// The scale of a panel's vertical axis. `nines` is for percentages that approach 100: 0, 90, 99, 99.9, ... are equally
/// far apart.
enum class axis { linear, logarithmic, nines };

/// A panel's horizontal axis: linear from 0, linear from the first point, or logarithmic with ticks at 1, 2, 4, ...
enum class x_axis { from_zero, from_data, doubling };

struct panel {
  std::string title, x_label;
  axis scale;
  std::vector<curve> curves;
  x_axis across = x_axis::from_zero;
  bool labelled = false;  ///< the curves have their names at their ends, not in the legend
};

/// Draws an SVG picture: panels side by side above one legend, in which equal names have equal colours. Omits points
/// that the scale cannot show (not finite, or not positive on a logarithmic axis).
std::string draw(std::string const& title, std::vector<panel> const& panels);

/// The same with small panels in rows of `columns`, each above a legend of its own.
std::string draw_small(std::string const& title, std::vector<panel> const& panels, std::size_t columns);

}  // namespace example
