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

/// The only stream of the process.
cudaStream_t stream();

/// Whether each step is captured once and replayed.
inline bool replays = false;

/// Whether the device is simulated.
bool in_software();

}  // namespace bench
