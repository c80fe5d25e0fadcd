// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "../../examples/parts/cpu.hpp"
#include "../../examples/parts/dense.hpp"
#include "../../examples/parts/softmax.hpp"
#include "gradient_check.hpp"

using namespace example;

namespace {

std::vector<double> random_numbers(std::size_t n, random_source& random) {
  std::vector<double> x(n);
  for (double& one : x) one = random.uniform(-1, 1);
  return x;
}

}  // namespace

TEST_CASE("dense: the gradients of input, weight and bias are those of the output") {
  for (auto const function : {activation::identity, activation::sigmoid, activation::relu}) {
    CAPTURE(int(function));
    constexpr int rows = 5, inputs = 7, outputs = 4;
    cpu device;
    random_source random{1};
    dense<cpu, double> layer{inputs, outputs, function, rows, random};
    layer.bias = random_numbers(outputs, random);
    auto x = random_numbers(rows * inputs, random);
    auto const direction = random_numbers(rows * outputs, random);  // loss = sum of direction * y

    auto const loss = [&] {
      layer.forward(device, x.data(), rows);
      double sum = 0;
      for (std::size_t i = 0; i < direction.size(); ++i) sum += direction[i] * layer.output[i];
      return sum;
    };
    loss();
    layer.output_gradient = direction;
    std::vector<double> dx(x.size());
    layer.backward(device, x.data(), rows, dx.data(), rows);

    auto const mean_loss = [&] { return loss() / rows; };
    check_gradient(x, dx, loss);
    check_gradient(layer.weight, layer.weight_gradient, mean_loss);
    check_gradient(layer.bias, layer.bias_gradient, mean_loss);
  }
}

TEST_CASE("softmax: the gradient is that of the loss, also for large inputs") {
  constexpr int rows = 3, classes = 4;
  random_source random{2};
  auto z = random_numbers(rows * classes, random);
  for (int k = 0; k < classes; ++k) z[2 * classes + k] += 1000;
  std::vector<std::uint8_t> const labels{3, 0, 1};
  std::vector<double> dz(z.size());

  auto const loss = [&] {
    std::vector<double> sums(rows);
    std::vector<std::int64_t> correct(rows);
    softmax_cross_entropy<double> const softmax{z.data(), dz.data(), labels.data(), classes, sums.data(),
                                                correct.data()};
    for (int row = 0; row < rows; ++row) softmax(row);
    return sums[0] + sums[1] + sums[2];
  };
  CHECK(std::isfinite(loss()));
  auto const gradient = dz;
  check_gradient(z, gradient, loss);
}

TEST_CASE("softmax: the loss of equal inputs is log(classes), and the largest input is the answer") {
  std::vector<double> z{0, 0, 0, 0, 0, 2}, dz(6), loss(2);
  std::vector<std::uint8_t> const labels{1, 2};
  std::vector<std::int64_t> correct(2);
  softmax_cross_entropy<double> const softmax{z.data(), dz.data(), labels.data(), 3, loss.data(), correct.data()};
  softmax(0), softmax(1), softmax(1);
  CHECK(loss[0] == doctest::Approx(std::log(3)));
  CHECK(correct == std::vector<std::int64_t>{0, 2});
}

TEST_CASE("cpu: products of 16-bit matrices are those in float, rounded once") {
  cpu device;
  std::vector<descent::half> const a{1.5f, -2.f, 0.25f, 3.f, 1.f, 8.f};  // 2x3
  std::vector<float> const b{1, 2, 3, 4, 5, 6};                          // 2x3
  std::vector<descent::half> c(4);
  device.multiply(0.5, matrix{a.data(), 2, 3}, matrix{b.data(), 2, 3}.t(), matrix{c.data(), 2, 2});
  CHECK(std::vector<float>(c.begin(), c.end()) == std::vector<float>{-0.875f, -1.25f, 14.5f, 32.5f});
}
