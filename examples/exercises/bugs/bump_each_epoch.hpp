// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 j: find the bug in this training loop, and fix it.
//
// Symptom: on the curve the loss falls within each epoch, but more slowly at the beginning of each, as if the training
// had just begun. Epochs of one batch show no effect of the momentum at all.
#pragma once

struct momentum_descent {
  double lr = 0.01, mu = 0.9, b = 0;

  void step(double& w, double g) {
    b = mu * b + g;
    w = w - lr * b;
  }
};

/// gradient(w) is that of the next batch.
template <class Gradient> void train(double& w, int epochs, int batches, Gradient const& gradient) {
  for (int epoch = 0; epoch < epochs; ++epoch) {
    momentum_descent opt;
    for (int batch = 0; batch < batches; ++batch) opt.step(w, gradient(w));
  }
}
