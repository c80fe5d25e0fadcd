// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/cuda.hpp>
#include <descent/engine/cuda/addresses.cuh>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/launch.cuh>
#include <descent/engine/step/layout.hpp>

#include <cstdint>

namespace descent::detail {

/// A layout of tensors in the memory of the current device, with its records there.
template <class Value, class Gradient> struct device_layout : layout<Value, Gradient> {
  using record = tensor_record<Value, Gradient>;

  cudaStream_t stream;
  int device = 0;
  device_array<record> tensors_there;
  device_array<std::int32_t> tensor_of_chunk_there;

  device_layout(parameters<Value, Gradient> const& params, cudaStream_t s)
      : layout<Value, Gradient>(params), stream(s) {
    require_cuda(cudaGetDevice(&device), "cudaGetDevice");
    require_device_tensors(*this, device);
    tensors_there = {this->tensors, s};
    tensor_of_chunk_there = {this->tensor_of_chunk, s};
  }

  /// Enqueues a kernel with one block for each chunk.
  template <class F> void each_chunk(void (*kernel)(record const*, std::int32_t const*, F), F const& f) const {
    device_scope const scope(device);
    launch(kernel, this->chunks(), chunk_threads, stream, tensors_there.get(), tensor_of_chunk_there.get(), f);
  }
};

}  // namespace descent::detail
