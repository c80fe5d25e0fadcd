// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/precision.hpp>
#include <descent/core/detail/summation_order.hpp>

#include <cstdint>

namespace descent::detail {

/// The error of products of n x n matrices relative to the largest rows: eps sqrt(n), twice what roundings that are
/// independent add up to. A larger bound would take columns of full rank for errors: eigenvalues of the first g g' of
/// noise reach down to 1 / (4 n^2) of the largest.
template <class Real> DESCENT_HD double rounding(std::int64_t n) { return machine_epsilon<Real> * sqrt(double(n)); }

/// Threads that work on some rows together: a block of `chunk_threads` threads on a device, one thread on the host. All
/// threads call the same functions in the same order; each function returns when all are done.
struct thread_team {
  static constexpr int capacity = 32;
  double* sum;  // `capacity` of them, shared by all threads

  /// Calls f(i) for i in [0, n).
  DESCENT_CALLS
  template <class F> DESCENT_HD void each(std::int64_t n, F const& f) const {
#if defined(__CUDA_ARCH__)
    for (std::int64_t i = threadIdx.x; i < n; i += chunk_threads) f(i);
    __syncthreads();
#else
    for (std::int64_t i = 0; i < n; ++i) f(i);
#endif
  }

  /// sum[i] <- sum of f(i, j) over j in [0, n), for i in [0, m), m at most `capacity`
  DESCENT_CALLS
  template <class F> DESCENT_HD void sums(int m, std::int64_t n, F const& f) const {
#if defined(__CUDA_ARCH__)
    int const lane = int(threadIdx.x) % warp;
    for (int i = int(threadIdx.x) / warp; i < m; i += chunk_threads / warp) {
      double s = 0;
      for (std::int64_t j = lane; j < n; j += warp) s += f(i, j);
      for (int distance = 1; distance < warp; distance *= 2) s += __shfl_down_sync(~0u, s, unsigned(distance));
      if (lane == 0) sum[i] = s;
    }
    __syncthreads();
#else
    for (int i = 0; i < m; ++i) {
      double lanes[warp] = {};
      for (std::int64_t j = 0; j < n; ++j) lanes[j % warp] += f(i, j);
      for (int distance = 1; distance < warp; distance *= 2)
        for (int l = 0; l < warp; l += 2 * distance) lanes[l] += lanes[l + distance];
      sum[i] = lanes[0];
    }
#endif
  }
};

}  // namespace descent::detail
