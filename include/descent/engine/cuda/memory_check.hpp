// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/error.hpp>
#include <descent/engine/cuda/outside.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#define DESCENT_TEXT_OF(...) #__VA_ARGS__
#define DESCENT_TEXT(...) DESCENT_TEXT_OF(__VA_ARGS__)

namespace descent::detail {

/// Checks the values and the caller's gradients of all tensors of a layout, also at other addresses.
template <class Layout>
void require_device_tensors(Layout const& where, std::vector<tensor_addresses> const& at, int device) {
  for (std::size_t t = 0; t < at.size(); ++t) {
    auto const& x = where.tensors[t];
    std::string const its = "parameter '" + where.names[t] + "': its ";
    require_device_memory({at[t].value, x.count, x.value_size(), its + "value"}, device);
    require_device_memory({at[t].gradient, x.count, where.callers_gradient(t).size, its + "gradient"}, device);
  }
}
template <class Layout> void require_device_tensors(Layout const& where, int device) {
  require_device_tensors(where, where.addresses(), device);
}

/// The attributes of a kernel. Throws cuda_error if this program has no code for the device.
template <class Kernel> cudaFuncAttributes require_code(Kernel* kernel, int device) {
  cudaFuncAttributes attributes{};
  cudaError_t const code = cudaFuncGetAttributes(&attributes, kernel);
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction ||
      code == cudaErrorUnsupportedPtxVersion) {
    cudaGetLastError();
    int major = 0, minor = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    throw cuda_error(
        code, "this program carries code for the architectures " DESCENT_TEXT(__CUDA_ARCH_LIST__) ", but device " +
                  std::to_string(device) + " is of compute capability " + std::to_string(major) + "." +
                  std::to_string(minor) + ": compile with -arch=sm_" + std::to_string(major) + std::to_string(minor));
  }
  require_cuda(code, "cudaFuncGetAttributes");
  return attributes;
}

}  // namespace descent::detail

#undef DESCENT_TEXT
#undef DESCENT_TEXT_OF
