// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scale.hpp"

#include <string>
#include <vector>

namespace example {

/// The mean and the standard deviation of a sample; of a single number it is 0.
struct sample { double mean, deviation; };
sample sample_of(std::vector<double> const& values);

/// A row of a dot plot: a dot for each value, and the values' mean with their standard deviation.
struct dot_row {
  std::string name;
  std::vector<double> values;
};

struct dot_panel {
  std::string title;  ///< says what the horizontal axis shows
  axis scale;
  std::vector<dot_row> rows;
  int digits = 1;  ///< of mean and standard deviation, after the point
};

/// Draws an SVG picture: dot plots below each other.
std::string draw_dots(std::string const& title, std::vector<dot_panel> const& panels);

}  // namespace example
