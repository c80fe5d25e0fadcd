// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#if defined(__linux__)
#include <sys/uio.h>
#include <unistd.h>
#endif
#if defined(__CUDACC__)
#include <cuda_runtime_api.h>
#endif

namespace descent::detail {

/// Whether the processor can read this byte, tested without touching it. True if the system cannot tell.
inline bool host_readable([[maybe_unused]] void const* p) {
#if defined(__linux__)
  char byte;
  iovec here{&byte, 1}, there{const_cast<void*>(p), 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
#else
  return true;
#endif
}

/// Throws std::invalid_argument if these bytes are not host memory.
inline void require_host_memory(void const* p, std::int64_t bytes, std::string const& what) {
  if (bytes == 0) return;
  bool on_host = host_readable(p) && host_readable(static_cast<char const*>(p) + bytes - 1);
#if defined(__CUDACC__)
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, p) == cudaSuccess) on_host &= attributes.type != cudaMemoryTypeDevice;
  else cudaGetLastError();
#endif
  if (!on_host)
    throw std::invalid_argument(what + " is not host memory; for device memory use the backend cuda{stream}");
}

/// The same for the value and the caller's gradient of a tensor, and of all tensors of a layout.
inline void require_host_tensor(std::string const& name, void const* value, std::int64_t value_bytes,
                                void const* gradient, std::int64_t gradient_bytes) {
  std::string const its = "parameter '" + name + "': its ";
  require_host_memory(value, value_bytes, its + "value");
  require_host_memory(gradient, gradient_bytes, its + "gradient");
}
template <class Layout> void require_host_tensors(Layout const& where) {
  for (std::size_t t = 0; t < where.tensors.size(); ++t) {
    auto const& x = where.tensors[t];
    auto const gradient = where.callers_gradient(t);
    require_host_tensor(where.names[t], x.value, x.count * x.value_size(), gradient.at, x.count * gradient.size);
  }
}

}  // namespace descent::detail
