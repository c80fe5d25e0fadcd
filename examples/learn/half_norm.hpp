// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "batch_norm.hpp"

#include <descent/descent.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace example::learn {

inline float in_half(double x) { return float(ds::half(float(x))); }

/// Batch normalization whose input and output are half. `Sum`, half or float, is the type in which the statistics are
/// added up and kept for the test.
template <class Sum> struct half_norm : batch_norm<float> {
  using batch_norm<float>::batch_norm;

  // snippet: sums
  /// The mean of a column, and the mean of its squared distances from it, each term added in Sum.
  void statistics(std::vector<float> const& x, std::int64_t rows, int j) {
    auto const mean_of = [&](auto const& term) {
      Sum sum{};
      for (std::int64_t e = j; e < rows * features; e += features)
        sum = Sum(float(sum) + float(Sum(float(term(x[std::size_t(e)])))));
      return double(float(Sum(float(sum) / float(rows))));
    };
    double const m = mean[std::size_t(j)] = mean_of([](float one) { return one; });
    variance[std::size_t(j)] = mean_of([&](float one) { return (one - m) * (one - m); });
  }
  // end

  void forward(std::vector<float>& x, std::int64_t rows, bool training) {
    for (float& one : x) one = in_half(one);
    z.resize(x.size());
    mean.resize(gain.size()), variance.resize(gain.size());
    for (int j = 0; training && j < features; ++j) {
      auto const at = std::size_t(j);
      statistics(x, rows, j);
      running_mean[at] = double(float(Sum(float(0.9 * running_mean[at] + 0.1 * mean[at]))));
      running_variance[at] = double(float(Sum(float(0.9 * running_variance[at] + 0.1 * variance[at]))));
    }
    auto const &m = training ? mean : running_mean, &v = training ? variance : running_variance;
    for (std::size_t i = 0; i < std::size_t(rows * features); ++i) {
      std::size_t const j = i % gain.size();
      z[i] = in_half((x[i] - m[j]) / std::sqrt(v[j] + eps));
      x[i] = in_half(gain[j] * z[i] + shift[j]);
    }
  }
};

}  // namespace example::learn
