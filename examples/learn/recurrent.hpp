// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/random.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// A recurrent network that adds numbers which it sees one after the other.
namespace example::learn {

namespace ds = descent;

/// h_t = relu(W h_{t-1} + u x_t), y = v h_T. W starts as the identity (Le et al. 2015), so that h neither grows nor
/// vanishes over the steps.
struct recurrent {
  static constexpr std::size_t units = 20, length = 40;
  std::vector<float> W, u, v, dW, du, dv;
  std::vector<std::vector<float>> h = std::vector<std::vector<float>>(length + 1, std::vector<float>(units));

  explicit recurrent(std::uint64_t seed)
      : W(units * units), u(units), v(units), dW(units * units), du(units), dv(units) {
    random_source random{seed};
    for (std::size_t i = 0; i < units; ++i) {
      W[i * units + i] = 1;
      u[i] = float(random.uniform(-0.3, 0.3)), v[i] = float(random.uniform(-0.3, 0.3));
    }
  }

  ds::parameters<float> parameters() {
    ds::parameters<float> all;
    all.add("W", W, dW), all.add("u", u, du), all.add("v", v, dv);
    return all;
  }

  /// The output for a sequence.
  float forward(std::vector<float> const& x) {
    for (std::size_t t = 0; t < length; ++t)
      for (std::size_t i = 0; i < units; ++i) {
        float sum = u[i] * x[t];
        for (std::size_t j = 0; j < units; ++j) sum += W[i * units + j] * h[t][j];
        h[t + 1][i] = std::max(sum, 0.f);
      }
    float y = 0;
    for (std::size_t i = 0; i < units; ++i) y += v[i] * h[length][i];
    return y;
  }

  /// Adds the gradient of the loss, whose derivative with respect to the output is dy.
  void backward(std::vector<float> const& x, float dy) {
    std::vector<float> dh(units), before(units);
    for (std::size_t i = 0; i < units; ++i) dv[i] += dy * h[length][i], dh[i] = dy * v[i];
    for (std::size_t t = length; t-- > 0; std::swap(dh, before)) {
      std::fill(before.begin(), before.end(), 0.f);
      for (std::size_t i = 0; i < units; ++i) {
        if (h[t + 1][i] <= 0) continue;
        du[i] += dh[i] * x[t];
        for (std::size_t j = 0; j < units; ++j) {
          dW[i * units + j] += dh[i] * h[t][j];
          before[j] += dh[i] * W[i * units + j];
        }
      }
    }
  }
};

}  // namespace example::learn
