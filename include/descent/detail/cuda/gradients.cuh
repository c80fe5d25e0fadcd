// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/cuda/meetings.cuh>
#include <descent/detail/cuda/storage.cuh>

#include <cstdint>

namespace descent::detail {

/// The part of the CUDA engine that reads gradients before the update: in which calls ranks meet, and the read-only
/// passes.
template <class Plan> class cuda_gradients {
 public:
  cuda_gradients(cuda_storage<Plan>& storage, cuda_ranks<Plan>& ranks, cuda_model<Plan>& model)
      : storage_(storage), ranks_(ranks), model_(model) {}

  /// `name`: of the call that measures.
  template <measure What>
  void measure_all(control_view<Plan> const& w, step_call const& call, [[maybe_unused]] char const* name) {
    device_view<Plan> const view = storage_.norm_view();
    if constexpr (Plan::splits) model_.enter(view, w, name, What == measure::sums);
    if constexpr (Plan::shards || Plan::splits)
      storage_.template each_partial<What>([&](double* x, std::int64_t n) {
        require_cuda(cudaMemsetAsync(x, 0, std::size_t(n) * sizeof(double), storage_.stream), "cudaMemsetAsync");
      });
    launch(measure_chunks<Plan, What>, storage_.own_chunks, chunk_threads, storage_.stream, view, w, call);
    if constexpr (Plan::shards)
      storage_.template each_partial<What>([&](double* x, std::int64_t n) { ranks_.add(x, n); });
    if constexpr (Plan::splits)  // with who is in the call, before the sums of the norm or after those of the rule
      storage_.template each_partial<What>(
          [&](double* x, std::int64_t n) { model_.add(What == measure::sums ? x : x - model_met, n + model_met); });
  }

  /// Whether ranks meet in this call of step(). True with one rank. `agree` is for agree_every.
  template <class Groups, class Agree>
  bool meets([[maybe_unused]] Groups const& groups, [[maybe_unused]] step_call const& call,
             [[maybe_unused]] Agree const& agree) {
    if constexpr (Plan::splits) model_.check();
    if constexpr (Plan::parallel || Plan::splits) {
      if constexpr (Plan::parallel) ranks_.check();
      if constexpr (Plan::overlaps)
        if (!call.flush) ranks_.require_marks(groups, "step()");
      bool const complete = meetings_.count(storage_.policies, call, storage_.capturing(), agree);
      if constexpr (Plan::overlaps)
        if (!complete) ranks_.end_unsent();
      return complete;
    } else return true;
  }
  /// Whether this micro-batch sends gradients.
  bool sends() const { return meetings_.sends(storage_.policies); }
  bool batches_wait() const { return meetings_.batches_wait(); }

 private:
  cuda_storage<Plan>& storage_;
  cuda_ranks<Plan>& ranks_;
  cuda_model<Plan>& model_;
  meetings<Plan> meetings_;
};

}  // namespace descent::detail
