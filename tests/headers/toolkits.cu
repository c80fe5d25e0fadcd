// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The device part with the headers of an older CUDA Toolkit, whose versions the macros name: see toolkits.sh.
#include <descent/backends/thrust.cuh>
#include <descent/descent.cuh>

#include <cuda/std/span>
#include <cuda/version>
#include <cuda_runtime_api.h>
#include <thrust/device_vector.h>

static_assert(CUDART_VERSION / 10 * 10 == DESCENT_CUDA, "the CUDA runtime's headers are of the wanted CUDA Toolkit");
static_assert(CCCL_VERSION / 1000 * 1000 == DESCENT_CCCL, "Thrust and libcu++ are of the wanted CUDA Toolkit");

namespace ds = descent;

void train(thrust::device_vector<float>& values, thrust::device_vector<float>& gradients, cudaStream_t stream) {
  ds::parameters<float> params;
  params.add("vector", values, gradients);
  ds::optimizer opt{params, ds::lamb{}, ds::clip_norm{1}, ds::on(thrust::cuda::par_nosync.on(stream))};
  opt.step();
}

void train(cuda::std::span<ds::half> values, cuda::std::span<ds::half> gradients, cudaStream_t stream) {
  ds::parameters<ds::half> params;
  params.add("span", values, gradients);
  ds::optimizer opt{params, ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{}, ds::cuda{stream}};
  opt.step();
}
