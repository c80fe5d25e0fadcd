// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

struct momentum_descent {
  double lr = 0.01, mu = 0.9;
  std::vector<double> b;

  explicit momentum_descent(std::size_t size) : b(size) {}

  void step(std::vector<double>& p, std::vector<double> const& g) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      b[i] = g[i] + mu * b[i];
      p[i] = p[i] - lr * b[i];
    }
  }
};
