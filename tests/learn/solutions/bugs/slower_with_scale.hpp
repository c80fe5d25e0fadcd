// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

/// Gradient descent; g are the gradients of the loss times `scale`, and the norm of the gradients is at most max_norm.
inline void step(std::vector<double>& p, std::vector<double> g, double lr, double scale, double max_norm) {
  for (double& x : g) x /= scale;
  double squares = 0;
  for (double const x : g) squares += x * x;
  double const factor = std::min(1.0, max_norm / std::sqrt(squares));
  for (double& x : g) x *= factor;
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= lr * g[i];
}
