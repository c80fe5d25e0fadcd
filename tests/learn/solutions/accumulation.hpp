// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

struct accumulator {
  std::vector<double> sum;
  double count = 0;

  explicit accumulator(std::size_t size) : sum(size) {}

  void add(std::vector<double> const& mean_gradient, int examples) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += examples * mean_gradient[i];
    count += examples;
  }

  std::vector<double> take() {
    std::vector<double> mean(sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      mean[i] = sum[i] / count;
      sum[i] = 0;
    }
    count = 0;
    return mean;
  }
};
