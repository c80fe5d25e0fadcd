// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

namespace test {

/// The larger number, or NaN if one is NaN: std::max and std::fmax hide an error that is NaN.
inline double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

}  // namespace test
