// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/precision.hpp>

#include <cmath>
#include <cstdint>

/// Ghost batch normalization (Hoffer et al. 2017, algorithm 1): a large batch is normalized in parts of the size of a
/// small batch, each with its own mean and variance, which keeps the noise of small batches. Host memory, row-major.
namespace descent {

/// The number of parts of `part` rows. The last part may have fewer.
constexpr std::int64_t ghost_parts(std::int64_t rows, std::int64_t part) {
  detail::require(rows >= 0, "ghost_parts", "rows", "at least 0", rows);
  detail::require(part > 0, "ghost_parts", "part", "above 0", part);
  return rows / part + (rows % part != 0);
}

/// The mean and the variance (divided by n, not n - 1) of each of the `features` columns in each part p:
/// mean[p * features + j]. Computed in double, in two passes over a part.
template <class Real>
void ghost_statistics(Real const* x, std::int64_t rows, std::int64_t features, std::int64_t part, double* mean,
                      double* variance) {
  detail::require(rows > 0, "ghost_statistics", "rows", "above 0", rows);
  detail::require(features > 0, "ghost_statistics", "features", "above 0", features);
  detail::require(part > 0, "ghost_statistics", "part", "above 0", part);
  for (std::int64_t p = 0; p < ghost_parts(rows, part); ++p) {
    std::int64_t const begin = p * part, end = begin + part < rows ? begin + part : rows;
    double *const m = mean + p * features, *const v = variance + p * features;
    for (std::int64_t j = 0; j < features; ++j) {
      double sum = 0, squares = 0;
      for (std::int64_t i = begin; i < end; ++i) sum += widen<double>(x[i * features + j]);
      m[j] = sum / double(end - begin);
      for (std::int64_t i = begin; i < end; ++i) {
        double const d = widen<double>(x[i * features + j]) - m[j];
        squares += d * d;
      }
      v[j] = squares / double(end - begin);
    }
  }
}

/// Updates the running statistics for inference with the parts of a batch in turn, as if each part were a batch:
///
///     run <- (1 - momentum) run + momentum part
inline void ghost_running(double const* of_parts, std::int64_t parts, std::int64_t features, double momentum,
                          double* run) {
  detail::require(parts >= 0, "ghost_running", "parts", "at least 0", parts);
  detail::require(features > 0, "ghost_running", "features", "above 0", features);
  detail::require(momentum > 0 && momentum <= 1, "ghost_running", "momentum", "in (0, 1]", momentum);
  for (std::int64_t p = 0; p < parts; ++p)
    for (std::int64_t j = 0; j < features; ++j)
      run[j] = (1 - momentum) * run[j] + momentum * of_parts[p * features + j];
}

/// y <- (x - mean) / sqrt(variance + eps), with the mean and variance of each part. y may be x.
template <class Real>
void ghost_normalize(Real const* x, std::int64_t rows, std::int64_t features, std::int64_t part, double const* mean,
                     double const* variance, double eps, Real* y) {
  detail::require(rows > 0, "ghost_normalize", "rows", "above 0", rows);
  detail::require(features > 0, "ghost_normalize", "features", "above 0", features);
  detail::require(part > 0, "ghost_normalize", "part", "above 0", part);
  detail::require_nonnegative("ghost_normalize", "eps", eps);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < features; ++j) {
      std::int64_t const s = i / part * features + j, e = i * features + j;
      y[e] = narrow<Real>((widen<double>(x[e]) - mean[s]) / std::sqrt(variance[s] + eps));
    }
}

}  // namespace descent
