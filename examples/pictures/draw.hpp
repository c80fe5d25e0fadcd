// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "contour.hpp"
#include "surface.hpp"

#include <string>
#include <vector>

namespace example::pictures {

/// The path of a rule on a surface, and its lr, or 0 if it has none; points[0] is the start.
struct path {
  double lr = 0;
  line points{};
  double value = 0;    // at the last point
  std::string told{};  // text under the panel, for a path that is not made of steps
};

/// The training loss before each epoch and after the last.
struct training {
  double lr = 0;
  std::vector<double> losses{};
};

/// The text under the panels: settings that are not the defaults.
struct notes { std::string surfaces{}, network{}; };

/// Draws a rule in SVG: its path on each surface and, if it has one, its training curve beside that of plain sgd.
std::string draw(std::string const& name, std::vector<surface> const& surfaces, std::vector<path> const& paths,
                 training const& own, training const& sgd, notes const& notes);

/// A rule of several in one picture, with its path on each surface.
struct together {
  std::string name;
  std::vector<path> paths;
};
std::string draw_together(std::vector<surface> const& surfaces, std::vector<together> const& rules);

}  // namespace example::pictures
