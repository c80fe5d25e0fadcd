// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "separate.cuh"

#include <cmath>
#include <cstdio>

int main() {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  float const here = value_after<descent::half>(1, stream), there = in_other_file(stream);
  cudaStreamDestroy(stream);
  std::printf("%g %g\n", double(here), double(there));
  return std::fabs(here - 0.875f) < 1e-3f && std::fabs(there - 1.5f) < 1e-2f ? 0 : 1;
}
