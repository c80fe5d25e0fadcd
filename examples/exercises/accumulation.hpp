// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 11: gradient accumulation.
//
// A batch that does not fit into memory is cut into micro-batches of unequal size. Each backward pass gives the
// gradient of the mean loss over its own examples. Write add() and take(), so that take() returns the gradient of the
// mean loss over all examples since the last take().
//
//     g = (sum over micro-batches of n_k g_k) / (sum of n_k)
//
// Hint: a mean of means is wrong if the parts are unequal. The library's accumulate{} does this if you call
// step(examples) after each backward pass of a sum.
#pragma once

#include <cstddef>
#include <vector>

struct accumulator {
  std::vector<double> sum;
  double count = 0;

  explicit accumulator(std::size_t size) : sum(size) {}

  void add(std::vector<double> const& mean_gradient, int examples) {
    // your lines
  }

  std::vector<double> take() {
    std::vector<double> mean(sum.size());
    // your lines
    return mean;
  }
};
