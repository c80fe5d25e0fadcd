// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 e: find the bug in this Adam, and fix it.
//
// Symptom: all parameters are NaN after the first step, although all gradients are finite.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

struct adam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  int t = 0;
  std::vector<double> m, v;

  explicit adam(std::size_t size) : m(size), v(size) {}

  void step(std::vector<double>& p, std::vector<double> const& g) {
    double const m_unbias = 1 / (1 - std::pow(beta1, t)), v_unbias = 1 / (1 - std::pow(beta2, t));
    for (std::size_t i = 0; i < p.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      p[i] -= lr * (m[i] * m_unbias) / (std::sqrt(v[i] * v_unbias) + eps);
    }
    ++t;
  }
};
