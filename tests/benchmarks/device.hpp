// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

/// What contests on a CUDA device share.
namespace bench {

inline void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(code));
}

/// As "13.0".
inline std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// All work of the process goes to this one.
cudaStream_t stream();

/// Whether steps are captured, each once, and replayed.
inline bool replays = false;

/// Whether the device is a program that only computes what a device would.
bool in_software();

}  // namespace bench
