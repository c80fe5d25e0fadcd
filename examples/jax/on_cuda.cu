// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "adamw.cuh"
#include "call.hpp"

namespace {

namespace ffi = xla::ffi;
using namespace adamw_step;

ffi::Error step(cudaStream_t stream, settings const& s, rate_argument lr, count_argument count, ffi::RemainingArgs args,
                count_result result, ffi::RemainingRets rets) {
  return checked(s, count, args, result, rets, [&](adamw const& rule, std::vector<tensor> const& tensors) {
    cudaError_t const e = enqueue(stream, tensors.data(), tensors.size(), rule, lr.typed_data(), result->typed_data());
    return e == cudaSuccess ? ffi::Error::Success() : ffi::Error::Internal(cudaGetErrorString(e));
  });
}

}  // namespace

// It only enqueues, so XLA may capture it into a CUDA graph.
XLA_FFI_DEFINE_HANDLER_SYMBOL(descent_adamw_cuda, step,
                              bound(ffi::Ffi::Bind().Ctx<ffi::PlatformStream<cudaStream_t>>()),
                              {ffi::Traits::kCmdBufferCompatible});
