// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "make.hpp"

#include <descent/descent.cuh>
#include <descent/matrices/cuda.cuh>

namespace {

struct cuda_backend {
  cudaStream_t stream;
  descent::cuda policy() const { return {stream}; }
  static bool is_device_error(std::exception const& e) { return dynamic_cast<descent::cuda_error const*>(&e); }
  static void fetch(void* to, void const* from, std::size_t bytes) {
    descent::detail::require_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  }
};

}  // namespace

c_api::made c_api::make_on_cuda(recipe const& r) try {
  return make(r, cuda_backend{static_cast<cudaStream_t>(r.options.stream)});
} catch (descent::cuda_error const& e) {
  throw device_failed(e.what());
}
