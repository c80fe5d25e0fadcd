// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/error.hpp>
#include <descent/engine/cuda/outside.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

/// Memory of a device and pinned memory: where it comes from, arrays, and many arrays in one allocation.
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

/// Many arrays in one allocation of device memory. add(), add_zeros() and add_copy() say what there will be; allocate()
/// sets their pointers, null for empty arrays; fill() enqueues one copy and one memset.
class device_arena {
 public:
  static constexpr std::size_t alignment = device_source::alignment;

  /// An uninitialized array.
  template <class T> void add(T*& at, std::size_t count) { raw_.add(at, count * sizeof(T)); }
  template <class T> void add_zeros(T*& at, std::size_t count) { zeros_.add(at, count * sizeof(T)); }
  template <class T, class Range> void add_copy(T*& at, Range const& of) {
    std::size_t const bytes = std::size(of) * sizeof(T);
    copies_.add(at, bytes);
    image_.resize(copies_.bytes);
    if (bytes) std::memcpy(image_.data() + copies_.parts.back().offset, std::data(of), bytes);
  }

  /// The memory, which the caller keeps. With DESCENT_SEPARATE_ARRAYS every array has an allocation of its own, so that
  /// a memory checker sees accesses beyond its end.
  std::vector<device_array<std::byte>> allocate(device_source const& from) {
    std::vector<device_array<std::byte>> memory;
#if defined(DESCENT_SEPARATE_ARRAYS)
    for (auto* const l : {&copies_, &zeros_, &raw_})
      for (part const& p : l->parts) p.set(p.at, memory.emplace_back(p.bytes, from).get());
#else
    std::byte* begin = memory.emplace_back(copies_.bytes + zeros_.bytes + raw_.bytes, from).get();
    for (auto* const l : {&copies_, &zeros_, &raw_}) {
      l->begin = begin;
      for (part const& p : l->parts) p.set(p.at, p.bytes ? begin + p.offset : nullptr);
      if (begin) begin += l->bytes;
    }
#endif
    return memory;
  }
  /// The arena must live until the stream has done this.
  void fill([[maybe_unused]] cudaStream_t stream) const {
#if defined(DESCENT_SEPARATE_ARRAYS)
    for (part const& p : copies_.parts) copy(p.get(p.at), p.offset, p.bytes, stream);
    for (part const& p : zeros_.parts) clear(p.get(p.at), p.bytes, stream);
#else
    copy(copies_.begin, 0, copies_.bytes, stream);
    clear(zeros_.begin, zeros_.bytes, stream);
#endif
  }

 private:
  struct part {
    void* at;  // the pointer to set, a T*
    std::size_t offset, bytes;
    void (*set)(void* at, std::byte* p);
    std::byte* (*get)(void const* at);
  };
  struct list {
    std::vector<part> parts;
    std::size_t bytes = 0;
    std::byte* begin = nullptr;

    template <class T> void add(T*& at, std::size_t size) {
      parts.push_back({&at, bytes, size, [](void* x, std::byte* p) { *static_cast<T**>(x) = reinterpret_cast<T*>(p); },
                       [](void const* x) {
                         void const* const p = *static_cast<T* const*>(x);
                         return static_cast<std::byte*>(const_cast<void*>(p));
                       }});
      bytes += (size + alignment - 1) / alignment * alignment;
    }
  };

  void copy(std::byte* to, std::size_t offset, std::size_t bytes, cudaStream_t stream) const {
    if (bytes)
      require_cuda(cudaMemcpyAsync(to, image_.data() + offset, bytes, cudaMemcpyHostToDevice, stream),
                   "cudaMemcpyAsync");
  }
  static void clear(std::byte* at, std::size_t bytes, cudaStream_t stream) {
    if (bytes) require_cuda(cudaMemsetAsync(at, 0, bytes, stream), "cudaMemsetAsync");
  }

  list copies_, zeros_, raw_;
  std::vector<std::byte> image_;
};

}  // namespace descent::detail
