// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "adamw.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

namespace adamw_step {

/// Tensors that fit into the arguments of a kernel.
struct batch {
  static constexpr std::size_t most = 64;
  tensor tensors[most];
};

/// Row y of the grid updates tensor y. The step count and the rate are in device memory. With a rate or count that is
/// not allowed nothing changes, the count included.
__global__ void update_all(batch all, adamw rule, float const* lr, std::int32_t const* count) {
  __shared__ adamw::terms<float> k;
  if (!is_step(*lr, *count)) return;
  if (threadIdx.x == 0) k = terms_of(rule, *lr, std::int64_t(*count) + 1);
  __syncthreads();
  tensor const& x = all.tensors[blockIdx.y];
  std::int64_t const threads = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < x.n; i += threads) update(x, i, k);
}
__global__ void increment(float const* lr, std::int32_t* count) {
  if (is_step(*lr, *count)) *count = counted(*count);
}

/// Enqueues the step on the stream: a kernel for each 64 tensors, and one that counts. Allocates and waits for nothing,
/// so it can be captured into a graph; each replay then is a step of its own.
inline cudaError_t enqueue(cudaStream_t stream, tensor const* tensors, std::size_t size, adamw const& rule,
                           float const* lr, std::int32_t* count, unsigned most_blocks = 1024) {
  constexpr unsigned block = 256;
  for (std::size_t begin = 0; begin < size; begin += batch::most) {
    batch all{};
    std::size_t const rows = std::min(batch::most, size - begin);
    std::copy_n(tensors + begin, rows, all.tensors);
    std::int64_t largest = 1;
    for (std::size_t i = 0; i < rows; ++i) largest = std::max(largest, all.tensors[i].n);
    auto const columns = unsigned(std::min<std::int64_t>((largest + block - 1) / block, most_blocks));
    update_all<<<dim3(columns, unsigned(rows)), block, 0, stream>>>(all, rule, lr, count);
  }
  increment<<<1, 1, 0, stream>>>(lr, count);
  return cudaGetLastError();
}

}  // namespace adamw_step
