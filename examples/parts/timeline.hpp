// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace example {

/// A piece of work in a lane. Equal kinds have equal colours; the text is written inside if it fits.
struct work {
  std::string lane, kind, text;
  double from, to;
};

/// From the earliest beginning to the latest end.
double length(std::vector<work> const& pieces);

/// Milliseconds since the first call, which any thread may make.
double milliseconds_now();
/// Sleeps until that time, for work that is to take as long as on a slower device.
void sleep_until(double milliseconds);

/// Lanes from top to bottom in the order of their first pieces of work.
struct timeline {
  std::string title;
  std::vector<work> pieces;
};

/// Draws an SVG picture: timelines below each other, each from its earliest piece of work on, with one axis and one
/// legend for the kinds.
std::string draw(std::string const& title, std::string const& unit, std::vector<timeline> const& timelines);

}  // namespace example
