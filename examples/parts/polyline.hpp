// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

namespace example {

struct point { double x, y; };
using polyline = std::vector<point>;

/// The line without points that are closer than the tolerance to the rest (Ramer 1972; Douglas & Peucker 1973).
polyline simplified(polyline const& all, double tolerance);

}  // namespace example
