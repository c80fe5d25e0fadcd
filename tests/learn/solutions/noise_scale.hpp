// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

inline double noise_scale(double small, double square_of_small, double big, double square_of_big) {
  double const gradient = (big * square_of_big - small * square_of_small) / (big - small);
  double const noise = (square_of_small - square_of_big) / (1 / small - 1 / big);
  return noise / gradient;
}
