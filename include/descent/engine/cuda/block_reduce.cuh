// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/summation_order.hpp>

#include <cstddef>

/// Reductions over the threads of a warp or a block, in the order of summation_order.hpp.
namespace descent::detail {

/// Combines all 32 lanes. The first lane has the result.
template <class T, class Combine> __device__ T reduce_warp(T x, Combine const& both) {
  for (int step = 1; step < warp; step *= 2) x = both(x, __shfl_down_sync(~0u, x, step));
  return x;
}

/// Combines all threads of a block. Thread 0 has the result. `of_warps` is shared memory and can be reused after the
/// next barrier.
template <class T, std::size_t Warps, class Combine>
__device__ T reduce_block(T (&of_warps)[Warps], T x, Combine const& both) {
  x = reduce_warp(x, both);
  if (threadIdx.x % warp == 0) of_warps[threadIdx.x / warp] = x;
  __syncthreads();
  if (threadIdx.x == 0)
    for (std::size_t w = 1; w < Warps; ++w) x = both(x, of_warps[w]);
  return x;
}

}  // namespace descent::detail
