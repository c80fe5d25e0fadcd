// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/cuda.cuh>
#include <descent/detail/cuda/device_memory.hpp>
#include <descent/detail/cuda/launch.cuh>
#include <descent/training/diloco.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// diloco on a device: step() enqueues on the backend's stream, a launch or copy for each parameter before and after
/// the outer step, and waits for nothing.
namespace descent::detail {

inline constexpr int outer_threads = 256;

template <class Real, class T>
__global__ __launch_bounds__(outer_threads) void outer_distance(Real* to, Real const* slow, T const* values,
                                                                std::int64_t count) {
  std::int64_t const i = std::int64_t(blockIdx.x) * outer_threads + threadIdx.x;
  if (i < count) to[i] = slow[i] - widen<Real>(values[i]);
}
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
  template <class Real, class T>
  static void distance(cuda const& b, Real* to, Real const* slow, T const* values, std::int64_t count) {
    launch(outer_distance<Real, T>, blocks(count), outer_threads, b.stream, to, slow, values, count);
  }
  template <class To, class From> static void copy(cuda const& b, To* to, From const* from, std::int64_t count) {
    launch(outer_copy<To, From>, blocks(count), outer_threads, b.stream, to, from, count);
  }
};

}  // namespace descent::detail
