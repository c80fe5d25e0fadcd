// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/batches.hpp"
#include "../parts/cpu.hpp"
#include "../parts/dense.hpp"
#include "../parts/network.hpp"
#include "../parts/random.hpp"
#include "../parts/softmax.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace example::learn {

/// Batch normalization of each column, in parts of a batch (Ioffe and Szegedy 2015; Hoffer et al. 2017).
template <class Real> struct batch_norm {
  int features;
  std::int64_t part;  // rows that are normalized together
  std::vector<Real> gain, shift, gain_gradient, shift_gradient;
  std::vector<double> running_mean, running_variance, mean{}, variance{};
  std::vector<Real> z{};  // normalized
  static constexpr double eps = 1e-5, momentum = 0.1;

  batch_norm(int features, std::int64_t part)
      : features{features}, part{part}, gain(std::size_t(features), 1), shift(gain.size()), gain_gradient(gain.size()),
        shift_gradient(gain.size()), running_mean(gain.size()), running_variance(gain.size(), 1) {}

  /// x <- gain z + shift, z = (x - mean) / sqrt(variance + eps)
  void forward(std::vector<Real>& x, std::int64_t rows, bool training) {
    std::int64_t const parts = ds::ghost_parts(rows, part);
    z.resize(std::size_t(rows * features));
    if (training) {
      mean.resize(std::size_t(parts * features)), variance.resize(mean.size());
      // snippet: forward
      ds::ghost_statistics(x.data(), rows, features, part, mean.data(), variance.data());
      ds::ghost_normalize(x.data(), rows, features, part, mean.data(), variance.data(), eps, z.data());
      ds::ghost_running(mean.data(), parts, features, momentum, running_mean.data());
      ds::ghost_running(variance.data(), parts, features, momentum, running_variance.data());
      // end
    } else {
      ds::ghost_normalize(x.data(), rows, features, rows, running_mean.data(), running_variance.data(), eps, z.data());
    }
    for (std::size_t i = 0; i < z.size(); ++i) x[i] = gain[i % gain.size()] * z[i] + shift[i % gain.size()];
  }

  /// dx = gain / sqrt(variance + eps) (dy - mean of dy - z mean of dy z), means over the part; dy becomes dx
  void backward(std::vector<Real>& dy, std::int64_t rows, double images) {
    for (int j = 0; j < features; ++j) {
      double sum = 0, sum_z = 0;
      for (std::int64_t p = 0, begin = 0; begin < rows; ++p, begin += part) {
        std::int64_t const end = std::min(begin + part, rows);
        double of_dy = 0, of_dyz = 0;
        for (std::int64_t e = begin * features + j; e < end * features; e += features)
          of_dy += dy[std::size_t(e)], of_dyz += dy[std::size_t(e)] * z[std::size_t(e)];
        sum += of_dy, sum_z += of_dyz;
        // snippet: backward
        double const k = gain[std::size_t(j)] / std::sqrt(variance[std::size_t(p * features + j)] + eps),
                     n = double(end - begin);
        for (std::int64_t e = begin * features + j; e < end * features; e += features)
          dy[std::size_t(e)] = Real(k * (dy[std::size_t(e)] - of_dy / n - z[std::size_t(e)] * of_dyz / n));
        // end
      }
      shift_gradient[std::size_t(j)] = Real(sum / images), gain_gradient[std::size_t(j)] = Real(sum_z / images);
    }
  }
};

/// A hidden layer of 50 units with batch normalization before relu.
template <class Real, class Norm = batch_norm<Real>> struct normalized_network {
  cpu device{};
  random_source random;
  dense<cpu, Real> first, second;
  Norm norm;
  std::vector<Real> input;
  std::vector<double> loss;
  std::vector<std::int64_t> correct;

  normalized_network(int batch, std::int64_t part, std::uint64_t seed)
      : random{seed}, first{64, 50, activation::identity, batch, random},
        second{50, 10, activation::identity, batch, random}, norm{50, part}, input(std::size_t(batch) * 64),
        loss(std::size_t(batch)), correct(loss.size()) {}

  ds::parameters<Real> parameters() {
    ds::parameters<Real> all;
    for (auto* layer : {&first, &second}) {
      auto const name = layer == &first ? "first" : "second";
      all.add(std::string{name} + ".weight", layer->weight, layer->weight_gradient);
      all.add(std::string{name} + ".bias", layer->bias, layer->bias_gradient);
    }
    all.add("norm.gain", norm.gain, norm.gain_gradient);
    all.add("norm.shift", norm.shift, norm.shift_gradient);
    return all;
  }

  /// The mean loss of a batch.
  double forward(image_rows const& images, bool training) {
    auto const rows = images.count;
    device.each(std::int64_t{rows} * 64, read_pixels<Real>{input.data(), images.pixels, images.scale});
    first.forward(device, input.data(), rows);
    norm.forward(first.output, rows, training);
    for (Real& y : first.output) y = value(activation::relu, y);
    second.forward(device, first.output.data(), rows);
    loss.assign(loss.size(), 0), correct.assign(correct.size(), 0);
    device.each(rows, softmax_cross_entropy<Real>{second.output.data(), second.output_gradient.data(), images.labels,
                                                  10, loss.data(), correct.data()});
    return std::accumulate(loss.begin(), loss.end(), 0.) / rows;
  }

  void backward(int rows) {
    second.backward(device, first.output.data(), rows, first.output_gradient.data(), rows);
    for (std::size_t i = 0; i < first.output.size(); ++i)
      first.output_gradient[i] *= slope(activation::relu, first.output[i]);
    norm.backward(first.output_gradient, rows, rows);
    first.backward(device, input.data(), rows, nullptr, rows);
  }

  /// Percentage of right answers with the running statistics.
  double accuracy(labelled_images const& images) {
    image_rows const all = rows_of(images);
    std::int64_t right = 0;
    int const batch = int(loss.size());
    for (int at = 0; at < all.count; at += batch) {
      forward(all.part({at, std::min(batch, all.count - at)}), false);
      right += std::accumulate(correct.begin(), correct.end(), std::int64_t{0});
    }
    return 100. * double(right) / all.count;
  }
};

}  // namespace example::learn
