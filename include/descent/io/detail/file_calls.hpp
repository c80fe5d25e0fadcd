// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/descriptor.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace descent::detail {

/// The system calls that change files. A test may look at each of them before it is made.
struct file_calls {
  /// Gets the name of a call and the number of bytes that it shall write, which it may lower to 1. Returns 0, or the
  /// errno with which the call fails.
  using hook = int (*)(char const* name, std::size_t& bytes);
  static inline std::atomic<hook> before{nullptr};
  /// Called when a file is opened for reading, before it is mapped.
  static inline std::atomic<void (*)()> before_mapping{nullptr};

  /// f(bytes), again as long as a signal interrupts it. f returns a negative number and sets errno if it fails.
  template <class F> static std::int64_t run(char const* name, std::size_t bytes, F const& f) {
    for (;;) {
      std::size_t now = bytes;
      hook const test = before.load(std::memory_order_relaxed);
      int const error = test ? test(name, now) : 0;
      if (error != 0) errno = error;
      std::int64_t const result = error != 0 ? -1 : std::int64_t(f(now));
      if (result >= 0 || errno != EINTR) return result;
    }
  }
  /// The same for a call that writes no bytes.
  template <class F> static int run(char const* name, F const& f) {
    return int(run(name, 0, [&](std::size_t) { return f(); }));
  }
};

}  // namespace descent::detail
