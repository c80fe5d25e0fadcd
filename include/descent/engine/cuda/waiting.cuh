// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/controller.cuh>
#include <descent/engine/cuda/error.hpp>
#include <descent/engine/cuda/launch.cuh>
#include <descent/engine/cuda/storage.cuh>
#include <descent/engine/cuda/stream.hpp>

#include <cstdint>

/// What micro-batches that wait for their update have left besides their gradients: their weight, the rows that they
/// selected, and their claim on a shared loss scale.
namespace descent::detail {

template <class Plan> __global__ __launch_bounds__(packet_threads) void keep_rows(device_view<Plan> v, bool none) {
  std::int64_t const chunk = blockIdx.x;
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  auto const [begin, size] = span_of(chunk, v.tensors[tensor]);
  keep_selection(v.extra.rows[tensor], begin, size, !none && v.control->batches > 0, int(threadIdx.x), packet_threads);
}

template <class Plan> __global__ void hold_shared(control_block* c, control_view<Plan> w, bool copied, bool holds) {
  if (copied) c->holds_scale = false;
  hold_scale<Plan>(*c, w.policies, holds && c->batches > 0);
}

template <class Plan> class cuda_waiting {
 public:
  explicit cuda_waiting(cuda_storage<Plan>& storage) : storage_(storage) {}

  /// Keeps the rows that are selected if micro-batches wait, otherwise none. Called after each step.
  void keep_rows([[maybe_unused]] bool none = false) const {
    if constexpr (Plan::keeps_selection)
      launch(detail::keep_rows<Plan>, storage_.view.chunk_count, packet_threads, storage_.stream, storage_.view, none);
  }
  /// The gradients are zero now: micro-batches that wait still count, with weight 0.
  void forget() const {
    if constexpr (has<Plan, kind::accumulation>)
      launch(set_value<double>, 1, 1, storage_.stream, &storage_.control->weight, 0.0);
    keep_rows(true);
  }
  /// Counts the optimizer among those that keep a shared loss scale, if its micro-batches wait and it `holds`.
  /// `copied`: the control block is a copy of one whose optimizer is counted.
  void hold_scale([[maybe_unused]] bool holds, [[maybe_unused]] bool copied = false) const {
    if constexpr (Plan::shares_scale && has<Plan, kind::accumulation>)
      if (!storage_.capturing())
        launch(hold_shared<Plan>, 1, 1, storage_.stream, storage_.control, storage_.controls(), copied, holds);
  }
  /// Ends the claim of an optimizer that is destroyed.
  void release() const {
    if constexpr (Plan::shares_scale) try {
        device_scope const scope(storage_.device);
        hold_scale(false);
      } catch (cuda_error const&) {}
  }

 private:
  cuda_storage<Plan>& storage_;
};

}  // namespace descent::detail
