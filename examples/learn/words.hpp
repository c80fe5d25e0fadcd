// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/random.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Words of unequal frequency, and a network with an embedding that learns a class for each.
namespace example::learn {

namespace ds = descent;

/// Word k is drawn with a probability of about 1 / (k + 1) (Zipf's law) and belongs to one of ten classes.
struct words {
  static constexpr std::size_t count = 1000, classes = 10;
  std::vector<double> below;  // cumulative frequencies
  std::vector<std::size_t> label;

  explicit words(std::uint64_t seed) : below(count), label(count) {
    random_source random{seed, 3};
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) below[k] = sum += 1 / double(k + 1), label[k] = random.below(classes);
    for (double& one : below) one /= sum;
  }
  std::size_t draw(random_source& random) const {
    auto const at = std::ranges::upper_bound(below, random.uniform(0, 1)) - below.begin();
    return std::min(std::size_t(at), count - 1);
  }
};

/// softmax(V e_k): e_k is row k of the embedding E.
struct embedded_classes {
  static constexpr std::size_t width = 16;
  std::vector<float> E, V, dE, dV;

  explicit embedded_classes(std::uint64_t seed)
      : E(words::count * width), V(words::classes * width), dE(E.size()), dV(V.size()) {
    random_source random{seed};
    for (float& one : E) one = float(random.uniform(-0.1, 0.1));
    for (float& one : V) one = float(random.uniform(-0.5, 0.5));
  }

  // snippet: parameters
  ds::parameters<float> parameters() {
    ds::parameters<float> all;
    all.add("embedding", E.data(), dE.data(), ds::shape{words::count, width});
    all.add("classes", V.data(), dV.data(), ds::shape{words::classes, width});
    return all;
  }
  // end

  std::vector<float> outputs(std::size_t word) const {
    std::vector<float> z(words::classes);
    for (std::size_t c = 0; c < z.size(); ++c)
      for (std::size_t i = 0; i < width; ++i) z[c] += V[c * width + i] * E[word * width + i];
    return z;
  }
  std::size_t answer(std::size_t word) const {
    auto const z = outputs(word);
    return std::size_t(std::ranges::max_element(z) - z.begin());
  }
  /// Adds the gradient of a word's part of the mean loss of a batch.
  void backward(std::size_t word, std::size_t label, float batch) {
    auto z = outputs(word);
    float const top = *std::ranges::max_element(z);
    float sum = 0;
    for (float& one : z) sum += one = std::exp(one - top);
    for (std::size_t c = 0; c < z.size(); ++c) {
      float const dz = (z[c] / sum - float(c == label)) / batch;
      for (std::size_t i = 0; i < width; ++i) {
        dV[c * width + i] += dz * E[word * width + i];
        dE[word * width + i] += dz * V[c * width + i];
      }
    }
  }
};

}  // namespace example::learn
