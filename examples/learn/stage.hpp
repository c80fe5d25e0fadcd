// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/dataset.hpp"
#include "../parts/random.hpp"

#include <descent/parameters.hpp>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <queue>
#include <string>
#include <utility>
#include <vector>

/// Parts of a network that is cut over several devices, in plain loops: sums have one order on every processor.
namespace example::learn {

using rows = std::vector<float>;  // one after another

/// y = max(W x, 0), or y = W x in the last layer. Keeps x and y of each micro-batch until its backward pass.
struct layer {
  std::size_t inputs, outputs;
  bool last;
  std::vector<float> w, g;
  std::map<std::size_t, std::pair<rows, rows>> kept = {};

  layer(std::size_t in, std::size_t out, bool is_last, random_source& random)
      : inputs{in}, outputs{out}, last{is_last}, w(in * out), g(in * out) {
    double const width = std::sqrt(6.0 / double(in));
    for (float& x : w) x = float(random.uniform(-width, width));
  }

  rows forward(std::size_t micro_batch, rows x) {
    rows y(x.size() / inputs * outputs);
    for (std::size_t k = 0; k < y.size(); ++k) {
      std::size_t const r = k / outputs, o = k % outputs;
      for (std::size_t i = 0; i < inputs; ++i) y[k] += w[o * inputs + i] * x[r * inputs + i];
      if (!last) y[k] = std::max(y[k], 0.f);
    }
    kept[micro_batch] = {std::move(x), y};
    return y;
  }

  /// Adds to g, row by row, and returns the gradient of x.
  rows backward(std::size_t micro_batch, rows dy) {
    auto const [x, y] = std::move(kept.extract(micro_batch).mapped());
    rows dx(x.size());
    for (std::size_t k = 0; k < y.size(); ++k) {
      std::size_t const r = k / outputs, o = k % outputs;
      if (!last && y[k] <= 0) continue;
      for (std::size_t i = 0; i < inputs; ++i) {
        g[o * inputs + i] += dy[k] * x[r * inputs + i];
        dx[r * inputs + i] += dy[k] * w[o * inputs + i];
      }
    }
    return dx;
  }
};

/// Consecutive layers.
struct stage {
  std::vector<layer> layers;
  std::size_t most_kept = 0;  // micro-batches whose activations were held at a time

  rows forward(std::size_t micro_batch, rows x) {
    for (auto& l : layers) x = l.forward(micro_batch, std::move(x));
    most_kept = std::max(most_kept, layers[0].kept.size());
    return x;
  }
  rows backward(std::size_t micro_batch, rows dy) {
    for (std::size_t k = layers.size(); k-- > 0;) dy = layers[k].backward(micro_batch, std::move(dy));
    return dy;
  }
  std::vector<float> values() const {
    std::vector<float> all;
    for (auto const& l : layers) all.insert(all.end(), l.w.begin(), l.w.end());
    return all;
  }
  /// `first`: the number of the first layer in the network.
  descent::parameters<float> parameters(std::size_t first = 0) {
    descent::parameters<float> all;
    for (std::size_t k = 0; k < layers.size(); ++k) all.add("w" + std::to_string(first + k), layers[k].w, layers[k].g);
    return all;
  }
};

/// 64-48-48-48-10 for the handwritten digits.
inline std::vector<layer> digits_layers() {
  random_source random{1};
  return {{64, 48, false, random}, {48, 48, false, random}, {48, 48, false, random}, {48, 10, true, random}};
}
inline labelled_images const& digits() {
  static dataset const data = embedded_digits();
  return data.train;
}
inline rows images(std::size_t first, std::size_t count) {
  auto const pixels = digits().pixels.begin() + std::ptrdiff_t(first * 64);
  rows x(pixels, pixels + std::ptrdiff_t(count * 64));
  for (float& pixel : x) pixel /= 16;
  return x;
}
/// The gradient of |y - e|^2 / 2 in each row, where e is the unit vector of the label.
inline rows loss_gradient(rows y, std::size_t first) {
  for (std::size_t r = 0; r < y.size() / 10; ++r) y[r * 10 + digits().labels[first + r]] -= 1;
  return y;
}

/// From one thread to another.
class channel {
 public:
  void send(rows x) {
    std::lock_guard const lock(mutex_);
    sent_.push(std::move(x));
    changed_.notify_one();
  }
  rows receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !sent_.empty(); });
    rows x = std::move(sent_.front());
    sent_.pop();
    return x;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<rows> sent_;
};

}  // namespace example::learn
