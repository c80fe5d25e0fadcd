// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>

#include <cstddef>
#include <vector>

using descent::half;

/// Gradient descent on weights in half. The arithmetic is in float.
struct half_descent {
  std::vector<half>& w;
  std::vector<float> master;

  explicit half_descent(std::vector<half>& weights) : w(weights), master(w.size()) {
    for (std::size_t i = 0; i < w.size(); ++i) master[i] = float(w[i]);
  }

  void step(std::vector<half> const& g, float lr) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      master[i] -= lr * float(g[i]);
      w[i] = half(master[i]);
    }
  }
};
