// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 f: find the bug in this training loop, and fix it.
//
// Symptom: the loss is the same number after every step, to the last digit. The gradients that are printed after the
// backward pass look right.
#pragma once

#include <cstddef>
#include <vector>

struct model {
  std::vector<double> w, dw;

  void zero_grad() { dw.assign(w.size(), 0); }
  void descend(double lr) {
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= lr * dw[i];
  }
};

/// backward(model) adds the gradient of the loss to dw.
template <class Backward> void train(model& m, int steps, double lr, Backward const& backward) {
  for (int t = 0; t < steps; ++t) {
    backward(m);
    m.zero_grad();
    m.descend(lr);
  }
}
