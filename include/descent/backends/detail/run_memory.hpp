// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstddef>
#include <cstring>
#include <new>

/// How a run reaches the memory of its parts.
namespace descent::detail {

using staging_memory = sole_handle<std::byte*, void (*)(std::byte*)>;

/// Memory of a backend, as the host reaches it. The functions of a device enqueue where no comment says that they wait.
struct run_memory {
  virtual ~run_memory() = default;
  virtual bool on_host() const { return true; }  // whether the host may read there, and copy() has copied at once
  virtual void copy(void* to, void const* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  /// Memory of the host that the device copies to at full speed.
  virtual staging_memory staging(std::size_t bytes) {
    constexpr std::align_val_t page{4096};
    return staging_memory(static_cast<std::byte*>(::operator new(bytes, page)),
                          [](std::byte* p) { ::operator delete(p, page); });
  }
  /// Throws std::logic_error if nothing can be waited for now.
  virtual void refuse_capture(char const* /*function*/) {}
  /// A function that waits for the copies so far; any thread may call it.
  virtual sole_function<> mark() {
    return sole_function<>([] {});
  }
};

/// The memory of a backend, or of an optimizer's storage on it. Each backend specializes it.
template <class Backend> struct memory_of_backend;
template <class System> struct memory_of_backend<host<System>> : run_memory {
  template <class... Storage> explicit memory_of_backend(host<System> const&, Storage const&...) {}
};

}  // namespace descent::detail
