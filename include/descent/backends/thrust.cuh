// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/cuda.hpp>

#if !__has_include(<thrust/system/cuda/execution_policy.h>)
#error descent/backends/thrust.cuh needs Thrust: it is in the CUDA Toolkit, in include/cccl
#include <descent_needs_thrust>
#endif
#include <thrust/system/cuda/execution_policy.h>

namespace descent {

/// The backend on the stream of a Thrust execution policy: ds::on(thrust::cuda::par.on(stream)), or par_nosync. With
/// either policy, step() only enqueues.
template <class Policy> cuda on(thrust::cuda_cub::execution_policy<Policy> const& policy) {
  return cuda{thrust::cuda_cub::stream(const_cast<thrust::cuda_cub::execution_policy<Policy>&>(policy))};
}

}  // namespace descent
