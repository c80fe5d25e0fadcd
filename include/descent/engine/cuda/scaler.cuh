// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/cuda.hpp>
#include <descent/engine/cuda/controller.cuh>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/launch.cuh>
#include <descent/engine/cuda/stream.hpp>

#include <array>

namespace descent::detail {

/// A loss scale in device memory.
template <class Policy> class cuda_scaler {
 public:
  cuda_scaler(Policy const& policy, cuda const& backend) : stream_(backend.stream) {
    require_cuda(cudaGetDevice(&device_), "cudaGetDevice");
    require_code(update_scale<Policy>, device_);
    scale_ = {std::array{shared_scale{policy.start()}}, stream_};
    require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  void next(Policy const& policy) {
    device_scope const scope(device_);
    launch(update_scale<Policy>, 1, 1, stream_, scale_.get(), policy);
  }
  void set(shared_scale const& s) {
    device_scope const scope(device_);
    launch(set_value<shared_scale>, 1, 1, stream_, scale_.get(), s);
  }
  shared_scale* shared() const { return scale_.get(); }
  shared_scale read() const {
    refuse_capturing(stream_, "loss_scaler::state()");
    device_scope const scope(device_);
    shared_scale s;
    scale_.read(&s, stream_);
    return s;
  }

 private:
  cudaStream_t stream_;
  int device_ = 0;
  device_array<shared_scale> scale_;
};

}  // namespace descent::detail
