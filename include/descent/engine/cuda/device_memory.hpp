// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/error.hpp>
#include <descent/engine/cuda/outside.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

namespace descent::detail {

struct pinned_delete {
  void operator()(void* p) const noexcept { cudaFreeHost(p); }
};

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

/// Resources whose stream comes last, as in RMM before 26, and those whose stream comes first, as in cuda::mr.
template <class R> concept stream_last = requires(R& r, std::size_t bytes, cudaStream_t s, void* p) {
  p = r.allocate(bytes, s);
  r.deallocate(p, bytes, s);
};
template <class R> concept stream_first = requires(R& r, std::size_t bytes, cudaStream_t s, void* p) {
  p = r.allocate(s, bytes, bytes);
  r.deallocate(s, p, bytes, bytes);
};

/// Where memory of a device comes from: cudaMalloc, whose cudaFree waits for the device, so that no step can outlive
/// its memory; or the caller's resource.
class device_source {
 public:
  static constexpr std::size_t alignment = 256;

  device_source() = default;
  template <class Resource>
  device_source(Resource& resource, int device, cudaStream_t stream)
      : resource_(&resource), device_(device), stream_(stream),
        allocate_([](void* r, std::size_t bytes, cudaStream_t s) -> void* {
          auto& from = *static_cast<Resource*>(r);
          if constexpr (stream_last<Resource>) return from.allocate(bytes, s);
          else return from.allocate(s, bytes, alignment);
        }),
        deallocate_([](void* r, void* p, std::size_t bytes, cudaStream_t s) {
          auto& from = *static_cast<Resource*>(r);
          if constexpr (stream_last<Resource>) from.deallocate(p, bytes, s);
          else from.deallocate(s, p, bytes, alignment);
        }) {
    static_assert(stream_last<Resource> || stream_first<Resource>,
                  "memory_from with cuda{}: a resource has void* allocate(bytes, stream) and "
                  "deallocate(p, bytes, stream), or the members of cuda::mr::resource");
  }

  /// Throws std::invalid_argument if a resource returns memory that the device cannot use.
  void* allocate(std::size_t bytes) const {
    void* p = nullptr;
    if (!resource_) return require_cuda(cudaMalloc(&p, bytes), "cudaMalloc"), p;
    p = allocate_(resource_, bytes, stream_);
    if (!p) throw std::bad_alloc();
    try {
      require_resource(p, bytes, alignment, [&](outside_memory const& m) { require_device_memory(m, device_); });
    } catch (...) {
      deallocate(p, bytes);
      throw;
    }
    return p;
  }
  void deallocate(void* p, std::size_t bytes) const noexcept {
    if (!resource_) {
      cudaFree(p);
    } else try {
        device_scope const scope(device_);
        deallocate_(resource_, p, bytes, stream_);
      } catch (cuda_error const&) {}  // the runtime has ended, and with it the memory
  }

 private:
  void* resource_ = nullptr;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  void* (*allocate_)(void*, std::size_t, cudaStream_t) = nullptr;
  void (*deallocate_)(void*, void*, std::size_t, cudaStream_t) = nullptr;
};

struct device_delete {
  device_source from;
  std::size_t bytes = 0;
  void operator()(void* p) const noexcept { from.deallocate(p, bytes); }
};

/// An uninitialized array in device memory.
template <class T> class device_array {
 public:
  device_array() = default;
  explicit device_array(std::size_t count, device_source const& from = {})
      : data_(count ? static_cast<T*>(from.allocate(count * sizeof(T))) : nullptr, {from, count * sizeof(T)}) {}
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
  sole_handle<T*, device_delete> data_;
};

/// Whether look(found), which enqueues work on the stream, sets *found in device memory. Waits for the stream.
template <class Look> bool finds(cudaStream_t stream, Look const& look) {
  std::int32_t x[1] = {0};
  device_array<std::int32_t> const found(x, stream);
  look(found.get());
  found.read(x, stream);
  return x[0] != 0;
}

/// One T in pinned host memory.
template <class T> sole_handle<T*, pinned_delete> pinned() {
  void* p = nullptr;
  require_cuda(cudaMallocHost(&p, sizeof(T)), "cudaMallocHost");
  return sole_handle<T*, pinned_delete>(new (p) T);
}

}  // namespace descent::detail
