// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <memory>
#include <new>

namespace descent::detail {

struct aligned_delete {
  void operator()(std::byte* p) const noexcept { ::operator delete(p, std::align_val_t{128}); }
};

/// Uninitialized host memory for masters and state. The threads that work on it are the first to touch it.
using host_memory = std::unique_ptr<std::byte[], aligned_delete>;
inline host_memory allocate_host(std::size_t bytes) {
  return host_memory(bytes ? static_cast<std::byte*>(::operator new(bytes, std::align_val_t{128})) : nullptr);
}

}  // namespace descent::detail
