// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "activation.hpp"
#include "matrix.hpp"
#include "random.hpp"

#include <descent/core/math.hpp>
#include <descent/presets/amp.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

namespace example {

/// The type in which a fully connected layer sums, by the rules of autocast: float, or double for double data.
template <class Real> using accurate = descent::amp::accumulate_t<descent::amp::op::linear, Real>;

/// y = f(y + b) in every row
template <class Real, class Value> struct add_bias_and_activate {
  Real* y;
  Value const* bias;
  int width;
  activation f;

  DESCENT_HD void operator()(std::int64_t i) const {
    using wide = accurate<Real>;
    y[i] = Real(value(f, wide(y[i]) + wide(bias[i % width])));
  }
};

/// dy becomes the gradient before the activation
template <class Real> struct multiply_by_slope {
  Real* dy;
  Real const* y;
  activation f;

  DESCENT_HD void operator()(std::int64_t i) const {
    using wide = accurate<Real>;
    dy[i] = Real(wide(dy[i]) * slope(f, wide(y[i])));
  }
};

/// The sum of each column, divided by a divisor. Each index is a column, so the order of the sum is fixed.
template <class Real, class Value> struct mean_of_columns {
  Real const* x;
  int rows, width;
  double divisor;
  Value* mean;

  DESCENT_HD void operator()(std::int64_t column) const {
    using wide = accurate<Real>;
    wide sum = 0;
    for (int row = 0; row < rows; ++row) sum += wide(x[std::int64_t{row} * width + column]);
    mean[column] = Value(sum / wide(divisor));
  }
};

template <class Value> struct add_to {
  Value* sum;
  Value const* x;

  DESCENT_HD void operator()(std::int64_t i) const { sum[i] = Value(accurate<Value>(sum[i]) + accurate<Value>(x[i])); }
};

/// A fully connected layer, y = f(x W^T + b), with one image in each row of x and y.
///
/// backward() takes the gradient of the *sum* of a batch's losses, which keeps 16-bit numbers in range. It divides by a
/// number of images only in the gradients of W and b.
template <class Device, class Value> struct dense {
  using real = typename Device::template real<Value>;
  template <class T> using array = typename Device::template array<T>;

  int inputs, outputs;
  activation function;
  array<Value> weight, weight_gradient, bias, bias_gradient;
  array<real> output, output_gradient;

  dense(int inputs, int outputs, activation function, int batch, random_source& random)
      : inputs{inputs}, outputs{outputs}, function{function}, weight(initial_weight(inputs, outputs, function, random)),
        weight_gradient(weight.size()), bias(outputs), bias_gradient(outputs), output(std::size_t(batch) * outputs),
        output_gradient(std::size_t(batch) * outputs) {}

  void forward(Device& device, real const* x, int rows) {
    device.multiply(1, matrix{x, rows, inputs}, weights().t(), matrix{output.data(), rows, outputs});
    device.each(std::int64_t{rows} * outputs,
                add_bias_and_activate<real, Value>{output.data(), bias.data(), outputs, function});
  }

  /// Expects the gradient of y in output_gradient. Writes the gradient of x to dx unless dx is null. Overwrites the
  /// gradients of W and b or, given `part`, scratch memory as large as W, adds to them.
  void backward(Device& device, real const* x, int rows, real* dx, double images, array<Value>* part = nullptr) {
    real* const dy = output_gradient.data();
    device.each(std::int64_t{rows} * outputs, multiply_by_slope<real>{dy, output.data(), function});
    Value* const db = (part ? *part : bias_gradient).data();
    device.each(outputs, mean_of_columns<real, Value>{dy, rows, outputs, images, db});
    if (part) device.each(outputs, add_to<Value>{bias_gradient.data(), db});

    matrix<real const> const dy_matrix{dy, rows, outputs};
    Value* const dw = (part ? *part : weight_gradient).data();
    device.multiply(1.0 / images, dy_matrix.t(), matrix{x, rows, inputs}, matrix{dw, outputs, inputs});
    if (part) device.each(std::int64_t(weight.size()), add_to<Value>{weight_gradient.data(), dw});
    if (dx) device.multiply(1, dy_matrix, weights(), matrix{dx, rows, inputs});
  }

 private:
  matrix<Value const> weights() const { return {weight.data(), outputs, inputs}; }

  /// Uniform, with the width that keeps the variance of the signal from layer to layer: Glorot and Bengio 2010, four
  /// times as wide for the logistic sigmoid (slope 1/4), and He et al. 2015 for relu.
  static std::vector<Value> initial_weight(int inputs, int outputs, activation f, random_source& random) {
    double const glorot = std::sqrt(6.0 / (inputs + outputs));
    double const width = f == activation::relu      ? std::sqrt(6.0 / inputs)
                         : f == activation::sigmoid ? 4 * glorot
                                                    : glorot;
    std::vector<Value> weight(std::size_t(inputs) * outputs);
    for (Value& w : weight) w = Value(float(random.uniform(-width, width)));
    return weight;
  }
};

}  // namespace example
