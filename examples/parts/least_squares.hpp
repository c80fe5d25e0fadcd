// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "random.hpp"

#include <descent/core/math.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace example {

/// Points of a linear function with noise: y = x w + 0.1 noise.
struct linear_data {
  int rows, columns;
  std::vector<float> x, y;

  linear_data(int rows, int columns, std::uint64_t seed) : rows{rows}, columns{columns} {
    random_source random{seed};
    for (int r = 0; r < rows; ++r) {
      double sum = random.uniform(-0.1, 0.1);
      for (int k = 0; k < columns; ++k) {
        x.push_back(float(random.uniform(-1, 1)));
        sum += double(x.back()) * (k % 3 - 0.8);
      }
      y.push_back(float(sum));
    }
  }
};

/// Adds the gradient of the squared errors of some rows, times a weight and the loss scale. Each index is one of w.
///
///     loss = weight sum_r (x_r w - y_r)^2
template <class Value> struct add_gradient_of_squares {
  float const *x, *y;  // of the first row
  int rows, columns;
  Value const* w;
  Value* gradient;
  float weight;
  float const* loss_scale;

  DESCENT_HD void operator()(std::int64_t j) const {
    float sum = 0;
    for (int r = 0; r < rows; ++r) {
      float error = -y[r];
      for (int k = 0; k < columns; ++k) error += x[r * columns + k] * float(w[k]);
      sum += 2 * error * x[r * columns + j];
    }
    gradient[j] = Value(float(gradient[j]) + sum * weight * *loss_scale);
  }
};

}  // namespace example
