// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 20: the best rate for a valley.
//
// Gradient descent on a quadratic multiplies the error along each axis by 1 - lr h, where h is its curvature. All
// curvatures lie between `smallest` and `largest`, both above 0. Return the constant rate at which the slowest axis is
// fastest, and the factor by which its error shrinks in a step.
//
//     lr = 2 / (h_min + h_max)     factor = (k - 1) / (k + 1),  k = h_max / h_min, the condition number
//
// Hint: at the best rate the flattest and the steepest axis shrink equally fast.
#pragma once

struct best { double lr, factor; };

inline best rate_for(double smallest, double largest) {
  return {0, 0};  // your lines
}
