// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace example {

/// The scale of an axis. `doubling` is logarithmic with ticks at powers of two. `nines` is for percentages that
/// approach 100: 0, 90, 99, 99.9, ... are equally far apart.
enum class axis { linear, logarithmic, doubling, nines };

/// The position of a value along its axis, in the axis' own unit; NaN if it cannot be shown.
double along(axis scale, double x);

struct range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  /// Includes a finite number.
  void include(double x);
  /// Makes a range that can be drawn even from an empty one.
  range with_margin(double share) const;
  double fraction(double x) const { return (x - low) / (high - low); }
};

/// A value of an axis and what is written at it.
struct tick {
  double value;
  std::string label;
};

/// About so many round values in a range, which is in the axis' own unit.
std::vector<tick> ticks(axis scale, range r, int parts);

}  // namespace example
