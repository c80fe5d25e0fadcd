// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/cuda/error.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace descent::detail {

struct device_delete {
  void operator()(void* p) const noexcept { cudaFree(p); }
};
struct pinned_delete {
  void operator()(void* p) const noexcept { cudaFreeHost(p); }
};

/// An uninitialized array in device memory. Freeing it waits for the device, so no step can outlive it.
template <class T> class device_array {
 public:
  device_array() = default;
  explicit device_array(std::size_t count) {
    if (count == 0) return;
    void* p = nullptr;
    require_cuda(cudaMalloc(&p, count * sizeof(T)), "cudaMalloc");
    data_.reset(static_cast<T*>(p));
  }
  /// Copies from host memory. Waits for the stream.
  template <class Range> device_array(Range const& from, cudaStream_t stream) : device_array(std::size(from)) {
    if (std::size(from) == 0) return;
    require_cuda(cudaMemcpyAsync(get(), std::data(from), std::size(from) * sizeof(T), cudaMemcpyHostToDevice, stream),
                 "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  T* get() const { return data_.get(); }
  /// Copies the first `count` elements to host memory. Waits for the stream.
  void read(T* to, cudaStream_t stream, std::size_t count = 1) const {
    require_cuda(cudaMemcpyAsync(to, get(), count * sizeof(T), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }

 private:
  std::unique_ptr<T, device_delete> data_;
};

struct stream_destroy {
  void operator()(cudaStream_t s) const noexcept { cudaStreamDestroy(s); }
};
struct event_destroy {
  void operator()(cudaEvent_t e) const noexcept { cudaEventDestroy(e); }
};
using owned_stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, stream_destroy>;
using owned_event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, event_destroy>;

/// A stream of the highest priority that does not synchronize with the default stream.
inline owned_stream new_stream() {
  int least = 0, greatest = 0;
  require_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t s = nullptr;
  require_cuda(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority");
  return owned_stream(s);
}
inline owned_event new_event() {
  cudaEvent_t e = nullptr;
  require_cuda(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return owned_event(e);
}
/// Makes later work on `behind` wait for the work enqueued on `ahead` so far.
inline void order(cudaStream_t ahead, cudaStream_t behind, owned_event const& by) {
  require_cuda(cudaEventRecord(by.get(), ahead), "cudaEventRecord");
  require_cuda(cudaStreamWaitEvent(behind, by.get(), 0), "cudaStreamWaitEvent");
}

/// One T in pinned host memory.
template <class T> std::unique_ptr<T, pinned_delete> pinned() {
  void* p = nullptr;
  require_cuda(cudaMallocHost(&p, sizeof(T)), "cudaMallocHost");
  return std::unique_ptr<T, pinned_delete>(new (p) T);
}

/// Makes a device current in the calling thread, for the lifetime of the object.
class device_scope {
 public:
  explicit device_scope(int device) : device_(device) {
    require_cuda(cudaGetDevice(&previous_), "cudaGetDevice");
    if (previous_ != device_) require_cuda(cudaSetDevice(device_), "cudaSetDevice");
  }
  ~device_scope() {
    if (previous_ != device_) cudaSetDevice(previous_);
  }
  device_scope(device_scope const&) = delete;
  device_scope& operator=(device_scope const&) = delete;

 private:
  int device_, previous_ = 0;
};

}  // namespace descent::detail
