// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

inline double clip(std::vector<std::vector<double>>& gradients, double loss_scale, double max_norm) {
  double squares = 0;
  for (auto& tensor : gradients)
    for (double& g : tensor) {
      g /= loss_scale;
      squares += g * g;
    }
  double const norm = std::sqrt(squares);
  double const factor = std::min(1.0, max_norm / norm);
  for (auto& tensor : gradients)
    for (double& g : tensor) g *= factor;
  return norm;
}
