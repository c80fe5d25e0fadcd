// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "verdict.hpp"

#include <descent/parameters.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2")  // the loops below; the library need not be optimized here
#endif

/// A network that reads handwritten digits, for exercises that train one.
namespace learn {

constexpr int inputs = 64, hidden = 64, classes = 10;

struct images {
  std::vector<float> x;
  std::vector<int> label;
  int count() const { return int(label.size()); }
};

inline char const* const digits[] = {
#include "../../examples/data/digits.inc"
};

/// Every fifth image is for the test.
inline void read(images& train, images& test) {
  int number = 0;
  for (char const* line : digits) {
    images& part = ++number % 5 == 0 ? test : train;
    for (; line[1] != '\0'; ++line)
      if (*line != ' ') part.x.push_back(float(*line <= '9' ? *line - '0' : *line - 'a' + 10) / 16);
    part.label.push_back(*line - '0');
  }
}

struct network {
  std::vector<float> w1 = std::vector<float>(hidden * inputs), w2 = std::vector<float>(classes * hidden);
  std::vector<float> b1 = std::vector<float>(hidden), b2 = std::vector<float>(classes);
  std::vector<float> dw1 = w1, dw2 = w2, db1 = b1, db2 = b2;

  explicit network(unsigned seed) {
    std::mt19937 random(seed);
    auto const fill = [&](std::vector<float>& w, double width) {
      for (float& one : w) one = float(width * (2 * (double(random()) / 4294967295.0) - 1));
    };
    fill(w1, std::sqrt(6.0 / inputs));
    fill(w2, std::sqrt(6.0 / (hidden + classes)));
  }

  /// The outputs z of one image, through the hidden units h.
  void forward(float const* x, float* h, float* z) const {
    for (int j = 0; j < hidden; ++j) {
      float const* w = w1.data() + j * inputs;
      float sum = 0;
      for (int i = 0; i < inputs; ++i) sum += w[i] * x[i];
      h[j] = std::max(0.f, sum + b1.data()[j]);
    }
    for (int k = 0; k < classes; ++k) {
      float const* w = w2.data() + k * hidden;
      float sum = b2.data()[k];
      for (int j = 0; j < hidden; ++j) sum += w[j] * h[j];
      z[k] = sum;
    }
  }

  /// Adds the gradient of the image's part of the mean loss of a batch; returns the loss.
  double backward(float const* x, int label, int batch) {
    float h[hidden], z[classes], dh[hidden] = {};
    forward(x, h, z);
    float const largest = *std::max_element(z, z + classes);
    float sum = 0;
    for (float const one : z) sum += std::exp(one - largest);
    for (int k = 0; k < classes; ++k) {
      float const dz = (std::exp(z[k] - largest) / sum - float(k == label)) / batch;
      db2.data()[k] += dz;
      for (int j = 0; j < hidden; ++j) {
        dw2.data()[k * hidden + j] += dz * h[j];
        dh[j] += dz * w2.data()[k * hidden + j];
      }
    }
    for (int j = 0; j < hidden; ++j) {
      if (h[j] <= 0) continue;
      db1.data()[j] += dh[j];
      float* dw = dw1.data() + j * inputs;
      for (int i = 0; i < inputs; ++i) dw[i] += dh[j] * x[i];
    }
    return double(std::log(sum)) - double(z[label] - largest);
  }

  double accuracy(images const& of) const {
    float h[hidden], z[classes];
    int right = 0;
    for (int n = 0; n < of.count(); ++n) {
      forward(of.x.data() + n * inputs, h, z);
      right += std::max_element(z, z + classes) - z == of.label.data()[n];
    }
    return 100.0 * right / of.count();
  }
};

/// The batches of an epoch after the other, each a shuffle of all images.
struct shuffled_batches {
  std::mt19937 random;
  std::vector<int> order{};

  /// Adds the gradients of the next batch; returns its mean loss.
  double backward(network& net, images const& train, int batch) {
    if (int(order.size()) < batch) {
      order.clear();
      for (int n = 0; n < train.count(); ++n) order.push_back(n);
      for (int n = train.count(); n > 1; --n) std::swap(order[std::size_t(n - 1)], order[random() % unsigned(n)]);
    }
    double loss = 0;
    for (int k = 0; k < batch; ++k) {
      loss +=
          net.backward(train.x.data() + order.back() * inputs, train.label[std::size_t(order.back())], batch) / batch;
      order.pop_back();
    }
    return loss;
  }
};

/// The network's memory, for the optimizer.
inline descent::parameters<float> parameters_of(network& net) {
  descent::parameters<float> params;
  params.add("w1", net.w1.data(), net.dw1.data(), descent::shape{hidden, inputs});
  params.add("b1", net.b1, net.db1);
  params.add("w2", net.w2.data(), net.dw2.data(), descent::shape{classes, hidden});
  params.add("b2", net.b2, net.db2);
  return params;
}

}  // namespace learn
