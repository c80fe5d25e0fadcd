// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/memory_check.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstddef>
#include <new>

namespace descent::detail {

/// Where host memory comes from: operator new, or the caller's resource.
class host_source {
 public:
  static constexpr std::size_t alignment = 128;

  host_source() = default;
  template <class Resource>
  explicit host_source(Resource& resource)
      : resource_(&resource), allocate_([](void* r, std::size_t bytes) -> void* {
          return static_cast<Resource*>(r)->allocate(bytes, alignment);
        }),
        deallocate_(
            [](void* r, void* p, std::size_t bytes) { static_cast<Resource*>(r)->deallocate(p, bytes, alignment); }) {
    static_assert(
        requires(void* p) { p = resource.allocate(alignment, alignment), resource.deallocate(p, 1, 1); },
        "memory_from on the host: a resource has void* allocate(bytes, alignment) and deallocate(p, bytes, "
        "alignment)");
  }

  /// Throws std::invalid_argument if a resource returns memory that the host cannot use.
  void* allocate(std::size_t bytes) const {
    if (!resource_) return ::operator new(bytes, std::align_val_t{alignment});
    void* const p = allocate_(resource_, bytes);
    if (!p) throw std::bad_alloc();
    try {
      require_resource(p, bytes, alignment, [](outside_memory const& m) { require_host_memory(m); });
    } catch (...) {
      deallocate(p, bytes);
      throw;
    }
    return p;
  }
  void deallocate(void* p, std::size_t bytes) const noexcept {
    if (resource_) deallocate_(resource_, p, bytes);
    else ::operator delete(p, std::align_val_t{alignment});
  }

 private:
  void* resource_ = nullptr;
  void* (*allocate_)(void*, std::size_t) = nullptr;
  void (*deallocate_)(void*, void*, std::size_t) = nullptr;
};

struct host_delete {
  host_source from;
  std::size_t bytes = 0;
  void operator()(std::byte* p) const noexcept { from.deallocate(p, bytes); }
};

/// Uninitialized host memory for masters and state. The threads that work on it are the first to touch it.
using host_memory = sole_handle<std::byte*, host_delete>;
inline host_memory allocate_host(std::size_t bytes, host_source const& from = {}) {
  return host_memory(bytes ? static_cast<std::byte*>(from.allocate(bytes)) : nullptr, {from, bytes});
}

}  // namespace descent::detail
