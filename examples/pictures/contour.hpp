// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/polyline.hpp"

#include <functional>
#include <vector>

namespace example::pictures {

using line = polyline;

/// The lines on which f has this value in the box from low to high, by marching squares on a grid of columns x rows
/// cells. A closed line ends where it begins.
std::vector<line> contour(std::function<double(point)> const& f, point low, point high, double value, int columns,
                          int rows);

}  // namespace example::pictures
