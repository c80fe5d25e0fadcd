// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 g: find the bug in this step with clipping and a loss scale, and fix it.
//
// Symptom: with a loss scale of 1 the loss falls as it should. With a scale of 1024 it falls 1000 times more slowly,
// although the gradients are divided by the scale.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

/// Gradient descent; g are the gradients of the loss times `scale`, and the norm of the gradients is at most max_norm.
inline void step(std::vector<double>& p, std::vector<double> g, double lr, double scale, double max_norm) {
  double squares = 0;
  for (double const x : g) squares += x * x;
  double const factor = std::min(1.0, max_norm / std::sqrt(squares));
  for (double& x : g) x *= factor;
  for (double& x : g) x /= scale;
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= lr * g[i];
}
