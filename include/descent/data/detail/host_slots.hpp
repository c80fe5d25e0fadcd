// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace descent::detail {

template <class Backend> inline constexpr bool is_host = false;
template <class System> inline constexpr bool is_host<host<System>> = true;

/// The part of a slot that a batch uses.
struct used_bytes { std::size_t begin, size; };

/// The memory of a loader's slots, on the host: a batch is read where it was written.
class host_slots {
 public:
  static constexpr bool on_device = false;

  template <class Backend>
  host_slots(std::size_t slots, std::size_t bytes, Backend const&)
      : bytes_(bytes), memory_(static_cast<std::byte*>(::operator new(slots* bytes, alignment))) {}

  /// Where a batch is written, and where it is read.
  std::byte* written(std::size_t slot) const { return memory_.get() + slot * bytes_; }
  std::byte* read(std::size_t slot) const { return written(slot); }
  /// Called by a worker before it writes, and when all is written. One worker at a time has a slot then.
  void before_writing(std::size_t) const {}
  void after_writing(std::size_t, std::span<used_bytes const>) const {}
  /// Called by the user's thread before it reads, and after it.
  void before_reading(std::size_t) const {}
  void after_reading(std::size_t) const {}
  /// Called by each worker before anything else.
  void enter_thread() const {}
  double copy_seconds() const { return 0; }

 private:
  static constexpr std::align_val_t alignment{256};
  struct release {
    void operator()(std::byte* p) const { ::operator delete(p, alignment); }
  };

  std::size_t bytes_;
  std::unique_ptr<std::byte, release> memory_;
};

/// The memory of slots for a backend.
template <class Backend> struct slots_of {
  static_assert(is_host<Backend>, "loader: cuda needs #include <descent/data/device_loader.hpp>");
  using type = host_slots;
};

}  // namespace descent::detail
