// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>

#include <cuda_runtime_api.h>

#include <concepts>

namespace descent {

namespace detail {

template <class Plan> class cuda_engine;
template <class Policy> class cuda_scaler;

}  // namespace detail

/// Values, gradients and states are in the memory of the device that is current when the optimizer is constructed. All
/// work goes to `stream`, which the caller keeps alive, and none to the default stream. step() and zero_grad() only
/// enqueue and may be captured into a graph, which then follows its schedules and its loss scale. A change of a group
/// that is pending at the capture becomes part of the graph; otherwise a replay uses the groups as the last eager step
/// or commit_groups() left them. Use it from one thread at a time. Write it with its namespace: `using descent::cuda;`
/// would collide with the toolkit's ::cuda.
struct cuda {
  cudaStream_t stream;

  using policy_kind = kind::backend;
  using stream_type = cudaStream_t;  ///< of step(stream)
  template <class Plan> using engine = detail::cuda_engine<Plan>;
  template <class Policy> using scaler = detail::cuda_scaler<Policy>;
};
/// The backend on the stream of a wrapper with get() or value(), such as cuda::stream_ref and rmm::cuda_stream_view.
template <class Stream> requires requires(Stream const& s) { { s.get() } -> std::same_as<cudaStream_t>; }
cuda on(Stream const& stream) {
  return cuda{stream.get()};
}
template <class Stream> requires requires(Stream const& s) { { s.value() } -> std::same_as<cudaStream_t>; }
cuda on(Stream const& stream) {
  return cuda{stream.value()};
}

}  // namespace descent
