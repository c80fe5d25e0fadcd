// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/cuda/error.hpp>
#include <descent/detail/step/plan.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

#define DESCENT_TEXT_OF(...) #__VA_ARGS__
#define DESCENT_TEXT(...) DESCENT_TEXT_OF(__VA_ARGS__)

namespace descent::detail {

/// Throws std::invalid_argument if kernels on this device cannot access the `count` elements at p.
inline void require_device_memory(void const* p, std::int64_t count, int device, std::string const& what) {
  if (count == 0) return;
  auto const fail = [&](std::string const& where) { throw std::invalid_argument(what + " is " + where); };
  cudaPointerAttributes a{};
  require_cuda(cudaPointerGetAttributes(&a, p), "cudaPointerGetAttributes");
  if (a.type == cudaMemoryTypeDevice && a.device != device)
    fail("on device " + std::to_string(a.device) + ", but the optimizer is on device " + std::to_string(device));
  if (a.type == cudaMemoryTypeUnregistered) {
    int pageable = 0;
    require_cuda(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, device), "cudaDeviceGetAttribute");
    if (!pageable)
      fail("host memory, which device " + std::to_string(device) + " cannot reach, or was freed; for host memory use "
           "the backend host{}");
  }
}
/// The same for the value and the caller's gradient of a tensor, and of all tensors of a layout.
inline void require_device_tensor(std::string const& name, std::int64_t count, void const* value, void const* gradient,
                                  int device) {
  require_device_memory(value, count, device, "parameter '" + name + "': its value");
  require_device_memory(gradient, count, device, "parameter '" + name + "': its gradient");
}
template <class Layout> void require_device_tensors(Layout const& where, int device) {
  for (std::size_t t = 0; t < where.tensors.size(); ++t)
    require_device_tensor(where.names[t], where.tensors[t].count, where.tensors[t].value, where.callers_gradient(t).at,
                          device);
}

inline bool host_may_read(void const* p) {
  cudaPointerAttributes a{};
  require_cuda(cudaPointerGetAttributes(&a, p), "cudaPointerGetAttributes");
  return a.type != cudaMemoryTypeDevice;
}

/// Throws std::invalid_argument if kernels on this device cannot read the numbers that policies point to.
template <class Plan> void require_device_inputs(typename Plan::policies const& policies, int device) {
  if constexpr (has<Plan, kind::loss>)
    require_device_memory(get<kind::loss>(policies).where, 1, device, "loss_at: the loss");
  if constexpr (has<Plan, kind::gradient_factor>)
    require_device_memory(get<kind::gradient_factor>(policies).where, 1, device, "gradient_factor_at: the factor");
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
