// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

template <class Gradient> void sam_step(std::vector<double>& p, Gradient const& gradient, double lr, double rho) {
  std::vector<double> const g = gradient(p);
  double squares = 0;
  for (double one : g) squares += one * one;
  double const norm = std::sqrt(squares);
  std::vector<double> above = p;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (norm > 0) above[i] += rho * g[i] / norm;
  std::vector<double> const worst = gradient(above);
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= lr * worst[i];
}
