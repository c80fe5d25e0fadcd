// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "separate.cuh"

float in_other_file(cudaStream_t stream) {
  return value_after<descent::half>(2, stream) + value_after<descent::bfloat16>(2, stream);
}
