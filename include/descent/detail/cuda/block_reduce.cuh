// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/util/summation_order.hpp>

/// What the threads of a warp or a block have together, in the order of summation_order.hpp.
namespace descent::detail {

/// Of all 32 lanes; the first one has the result.
template <class T, class Combine> __device__ T reduce_warp(T x, Combine const& both) {
  for (int step = 1; step < warp; step *= 2) x = both(x, __shfl_down_sync(~0u, x, step));
  return x;
}

/// Of all threads of a block; thread 0 has the result. `of_warps` is shared memory, which is free again behind the next
/// barrier.
template <class T, int Warps, class Combine> __device__ T reduce_block(T (&of_warps)[Warps], T x, Combine const& both) {
  x = reduce_warp(x, both);
  if (threadIdx.x % warp == 0) of_warps[threadIdx.x / warp] = x;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < Warps; ++w) x = both(x, of_warps[w]);
  return x;
}

}  // namespace descent::detail
