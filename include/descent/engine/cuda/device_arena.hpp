// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/device_memory.hpp>

#include <cstddef>
#include <cstring>
#include <vector>

namespace descent::detail {

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
