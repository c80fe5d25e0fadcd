// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 h: find the bug in this step in half, and fix it.
//
// Symptom: the same training in float works. In half, the loss stops falling when the steps become small: a weight of 1
// with steps of 0.0001 is still exactly 1 after 1000 steps.
#pragma once

#include <descent/core/precision.hpp>

#include <cstddef>
#include <vector>

using descent::half;

/// Gradient descent on weights in half. The arithmetic is in float.
struct half_descent {
  std::vector<half>& w;

  explicit half_descent(std::vector<half>& weights) : w(weights) {}

  void step(std::vector<half> const& g, float lr) {
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = half(float(w[i]) - lr * float(g[i]));
  }
};
