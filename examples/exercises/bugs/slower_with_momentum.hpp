// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 i: find the bug in this gradient descent with momentum, and fix it.
//
// Symptom: with a constant gradient, momentum 0.9 should make the steps grow to 10 lr g. They shrink to 0.53 lr g, and
// the loss falls more slowly than without momentum. On the curve every other step is a long one.
#pragma once

#include <cstddef>
#include <vector>

struct momentum_descent {
  double lr = 0.01, mu = 0.9;
  std::vector<double> b;

  explicit momentum_descent(std::size_t size) : b(size) {}

  void step(std::vector<double>& p, std::vector<double> const& g) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      b[i] = g[i] - mu * b[i];
      p[i] = p[i] - lr * b[i];
    }
  }
};
