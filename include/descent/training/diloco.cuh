// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/cuda.cuh>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/launch.cuh>
#include <descent/training/diloco.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// diloco on a device: step() enqueues on the optimizer's stream, a launch for each parameter before and after the
/// outer step, and waits for nothing. The constructor waits for the backend's stream.
namespace descent::detail {

inline constexpr int outer_threads = 256;

template <class To, class From>
__global__ __launch_bounds__(outer_threads) void outer_copy(To* to, From const* from, std::int64_t count) {
  using real = std::conditional_t<std::is_same_v<To, double> || std::is_same_v<From, double>, double, float>;
  std::int64_t const i = std::int64_t(blockIdx.x) * outer_threads + threadIdx.x;
  if (i < count) to[i] = narrow<To>(widen<real>(from[i]));
}

template <> struct outer_memory<cuda> {
  template <class Real> struct array {
    device_array<Real> elements;
    array(cuda const&, std::size_t count) : elements(count) {}
    Real* data() const { return elements.get(); }
  };
  static std::int64_t blocks(std::int64_t count) { return (count + outer_threads - 1) / outer_threads; }
  template <class To, class From> static void copy(cuda const& b, To* to, From const* from, std::int64_t count) {
    launch(outer_copy<To, From>, blocks(count), outer_threads, b.stream, to, from, count);
  }
  static void wait(cuda const& b) { require_cuda(cudaStreamSynchronize(b.stream), "cudaStreamSynchronize"); }
};

}  // namespace descent::detail
