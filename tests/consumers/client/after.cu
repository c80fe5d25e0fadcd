// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "after.hpp"

#include <descent/cuda.cuh>

std::unique_ptr<adam> make_after(settings const& s, std::vector<tensor> const& tensors, float const* inverse_scale,
                                 void* stream) {
  return std::make_unique<with_descent<ds::cuda>>(s, tensors, inverse_scale,
                                                  ds::cuda{static_cast<cudaStream_t>(stream)});
}
