// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 17: the gradient noise scale.
//
// The square of a gradient's norm is too large on average, because noise adds to it: E |g_b|^2 = |G|^2 + S / b for a
// batch of b examples. From the mean squares of the norms at two batch sizes b < B, return the noise scale S / |G|^2,
// which is about the batch above which a larger one helps little.
//
//     |G|^2 = (B |g_B|^2 - b |g_b|^2) / (B - b)     S = (|g_b|^2 - |g_B|^2) / (1 / b - 1 / B)     return S / |G|^2
//
// Hint: both lines follow from the equation for b and for B (McCandlish et al. 2018, appendix A.1).
#pragma once

inline double noise_scale(double small, double square_of_small, double big, double square_of_big) {
  return 0;  // your lines
}
