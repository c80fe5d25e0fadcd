// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "contour.hpp"
#include "surface.hpp"

#include <string>
#include <vector>

namespace example::pictures {

/// What a rule did on a surface, and with which lr, 0 if it has none; points[0] is the start.
struct path {
  double lr = 0;
  line points{};
  double value = 0;    // at the last point
  std::string told{};  // under the panel, of a path that is not of steps
};

/// The training loss before each epoch and after the last.
struct training {
  double lr = 0;
  std::vector<double> losses{};
};

/// What stands under the panels: settings that are not the defaults.
struct notes { std::string surfaces{}, network{}; };

/// The picture of a rule, in SVG: its path on each surface, its training beside that of plain sgd, if it has one.
std::string draw(std::string const& name, std::vector<surface> const& surfaces, std::vector<path> const& paths,
                 training const& own, training const& sgd, notes const& notes);

}  // namespace example::pictures
