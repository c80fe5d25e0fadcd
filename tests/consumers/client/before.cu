// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "before.hpp"

__global__ void update_elements(tensor x, __half const* gradient, float const* inverse_scale, factors k) {
  std::int64_t const i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < x.count) update(x, gradient, i, *inverse_scale, k);
}

static void update_all(tensor const& x, __half const* gradient, float const* inverse_scale, factors const& k,
                       void* stream) {
  unsigned const blocks = unsigned((x.count + 255) / 256);
  update_elements<<<blocks, 256, 0, static_cast<cudaStream_t>(stream)>>>(x, gradient, inverse_scale, k);
}

std::unique_ptr<adam> make_before(settings const& s, std::vector<tensor> const& tensors, float const* inverse_scale,
                                  void*) {
  return std::make_unique<own<update_all>>(s, tensors, inverse_scale);
}
