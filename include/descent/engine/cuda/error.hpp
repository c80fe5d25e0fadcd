// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace descent {

/// A call to the CUDA runtime failed. The message names the call, its source location and CUDA's reason.
struct cuda_error : std::runtime_error {
  cudaError_t code;
  cuda_error(cudaError_t c, std::string const& what) : std::runtime_error(what), code(c) {}
};

namespace detail {

/// Whether an error is of work before the call that returns it, and of all calls after it.
inline bool is_lasting(cudaError_t code) {
  for (cudaError_t const one :
       {cudaErrorIllegalAddress, cudaErrorMisalignedAddress, cudaErrorLaunchFailure, cudaErrorAssert,
        cudaErrorIllegalInstruction, cudaErrorInvalidAddressSpace, cudaErrorInvalidPc, cudaErrorHardwareStackError,
        cudaErrorLaunchTimeout, cudaErrorECCUncorrectable})
    if (code == one) return true;
  return false;
}

inline void require_cuda(cudaError_t code, char const* call, char const* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // clears an error that is not sticky, so it is reported only once
  throw cuda_error(
      code, std::string(call) + " failed: " + cudaGetErrorName(code) + ", " + cudaGetErrorString(code) + " (" + file +
                ":" + std::to_string(line) + ")" +
                (is_lasting(code) ? "; the device failed earlier in this process and can no longer be used" : ""));
}

}  // namespace detail
}  // namespace descent
