// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

namespace test {

/// The larger one, or NaN where one of them is: std::max and std::fmax overlook an error that is not a number.
inline double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

}  // namespace test
