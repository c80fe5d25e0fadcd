// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/cuda/error.hpp>

#include <cstdint>
#include <type_traits>

namespace descent::detail {

/// The number of kernel launches by the calling thread. Every kernel of the library goes through launch().
inline thread_local std::int64_t launches = 0;

template <class... Parameters>
void launch(void (*kernel)(Parameters...), std::int64_t blocks, int threads, cudaStream_t stream,
            std::type_identity_t<Parameters> const&... arguments) {
  if (blocks == 0) return;
  ++launches;
  // Not kernel<<<...>>>: its error is cudaGetLastError(), which may return an error that the caller left there.
  void* pointers[] = {const_cast<void*>(static_cast<void const*>(&arguments))...};
  auto const* const address = reinterpret_cast<void const*>(kernel);  // which the overloads of CUDA 12 and 13 share
  require_cuda(cudaLaunchKernel(address, dim3(unsigned(blocks)), dim3(unsigned(threads)), pointers, 0, stream),
               "kernel launch");
}

}  // namespace descent::detail
