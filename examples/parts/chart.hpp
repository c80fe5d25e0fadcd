// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "polyline.hpp"
#include "scale.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace example {

/// The range of a value at x.
struct bar { double x, low, high; };

/// A colour and a dash of the chart; the numbers go round.
struct pen { std::size_t colour, dash; };
constexpr std::size_t ink = 6, grey = 7;  ///< colours besides the first six

struct curve {
  std::string name;  ///< a curve without a name has no label
  std::vector<point> points;
  std::vector<point> marks = {};  ///< circles
  std::vector<bar> bars = {};     ///< many of them are drawn as a band
  std::optional<pen> with = {};   ///< otherwise a pen for each name
};

/// A panel's horizontal axis: linear from 0, linear from the first point, or logarithmic with ticks at powers of two or
/// of ten.
enum class x_axis { from_zero, from_data, doubling, decades };

struct panel {
  std::string title;  ///< says what the vertical axis shows
  std::string x_label;
  axis scale;
  std::vector<curve> curves;
  x_axis across = x_axis::from_zero;
  bool map = false;  ///< both axes have the same unit, and ends of curves are no place for names
  std::string y_label = {};  ///< of a map
};

/// Draws panels as SVG, in rows of `columns`. Equal names have equal colours. Names stand at the ends of curves, or
/// below the panel if there is no room; curves that lie on each other share a label, as in a = b, and are dashed. Omits
/// points that the scale cannot show (not finite, or not positive on a logarithmic axis).
std::string draw(std::string const& title, std::vector<panel> const& panels, std::size_t columns = 1);

}  // namespace example
