// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
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
    m.zero_grad();
    backward(m);
    m.descend(lr);
  }
}
