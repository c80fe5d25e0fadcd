// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/error.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

#define DESCENT_TEXT_OF(...) #__VA_ARGS__
#define DESCENT_TEXT(...) DESCENT_TEXT_OF(__VA_ARGS__)

namespace descent::detail {

/// The number of kernel launches by the calling thread. Every kernel of the library goes through launch().
inline thread_local std::int64_t launches = 0;

/// Waits until the work before this kernel on the stream has ended, if the kernel was launched by launch_early().
__device__ inline void await_work_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Allows the next kernel to be launched, if it is by launch_early().
__device__ inline void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Whether a kernel that calls await_work_before() can wait, and the driver keeps such launches in graphs.
inline bool may_begin_early(cudaFuncAttributes const& code) {
  int driver = 0;
  return code.ptxVersion >= 90 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030;
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

/// Blocks, and how many of them share the work of one, side by side.
struct launch_grid {
  std::int64_t blocks;
  int parts = 1;
  launch_grid(std::int64_t b, int p = 1) : blocks(b), parts(p) {}
  operator dim3() const { return {unsigned(blocks), unsigned(parts)}; }
};

template <class... Parameters>
void launch(void (*kernel)(Parameters...), launch_grid const& grid, int threads, cudaStream_t stream,
            std::type_identity_t<Parameters> const&... arguments) {
  if (grid.blocks == 0) return;
  ++launches;
  // Not kernel<<<...>>>: its error is cudaGetLastError(), which may return an error that the caller left there.
  void* pointers[] = {const_cast<void*>(static_cast<void const*>(&arguments))...};
  auto const* const address = reinterpret_cast<void const*>(kernel);  // which the overloads of CUDA 12 and 13 share
  require_cuda(cudaLaunchKernel(address, grid, dim3(unsigned(threads)), pointers, 0, stream), "kernel launch");
}

/// The same for a kernel that begins with await_work_before(): if `early`, which may_begin_early() says, its launch
/// overlaps with the work before it (programmatic dependent launch).
template <class... Parameters>
void launch_early(bool early, void (*kernel)(Parameters...), launch_grid const& grid, int threads, cudaStream_t stream,
                  std::type_identity_t<Parameters> const&... arguments) {
  if (!early) return launch(kernel, grid, threads, stream, arguments...);
  if (grid.blocks == 0) return;
  ++launches;
  void* pointers[] = {const_cast<void*>(static_cast<void const*>(&arguments))...};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(unsigned(threads));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  require_cuda(cudaLaunchKernelExC(&config, reinterpret_cast<void const*>(kernel), pointers), "kernel launch");
}

}  // namespace descent::detail

#undef DESCENT_TEXT
#undef DESCENT_TEXT_OF
