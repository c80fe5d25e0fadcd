// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/cuda.hpp>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/stream.hpp>
#include <descent/backends/detail/run_memory.hpp>

#include <cstddef>
#include <utility>

namespace descent::detail {

/// While it exists, the calling thread may wait, allocate and free although another thread captures a graph.
class relaxed_capture {
 public:
  relaxed_capture() { exchange(); }
  relaxed_capture(relaxed_capture const&) = delete;
  ~relaxed_capture() { exchange(); }

 private:
  void exchange() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Memory of a device: of the current one, or of that of an optimizer's storage.
template <> struct memory_of_backend<cuda> : run_memory {
  template <class... Storage>
  explicit memory_of_backend(cuda const& backend, Storage const&... of) : stream_(backend.stream) {
    if constexpr (sizeof...(of) > 0) ((device_ = of.device), ...);
    else require_cuda(cudaGetDevice(&device_), "cudaGetDevice");
  }

  bool on_host() const override { return false; }
  /// Throws std::invalid_argument unless copy() can read this memory.
  void require_source(outside_memory const& m) const { require_copyable(m); }
  void copy(void* to, void const* from, std::size_t bytes) override {
    device_scope const scope(device_);
    if (bytes) require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
  staging_memory staging(std::size_t bytes) override {
    device_scope const scope(device_);
    relaxed_capture const others_go_on;
    void* p = nullptr;
    if (bytes) require_cuda(cudaMallocHost(&p, bytes), "cudaMallocHost");
    return staging_memory(static_cast<std::byte*>(p), [](std::byte* memory) {
      relaxed_capture const while_freed;
      pinned_delete()(memory);
    });
  }
  void refuse_capture(char const* function) override { refuse_capturing(stream_, function); }
  sole_function<> mark() override {
    device_scope const scope(device_);
    owned_event event = new_event();
    require_cuda(cudaEventRecord(event.get(), stream_), "cudaEventRecord");
    return sole_function<>([event = std::move(event)] {
      relaxed_capture const others_go_on;
      require_cuda(cudaEventSynchronize(event.get()), "cudaEventSynchronize");
    });
  }

 private:
  cudaStream_t stream_;
  int device_ = 0;
};

}  // namespace descent::detail
