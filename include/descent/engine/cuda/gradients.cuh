// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/meetings.cuh>
#include <descent/engine/cuda/storage.cuh>
#include <descent/engine/step/profiler.hpp>
#include <descent/engine/step/sending.hpp>

#include <cstdint>
#include <span>
#include <type_traits>

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
    [[maybe_unused]] auto const range = begin_range<Plan>("measure");
    device_view<Plan> const view = storage_.norm_view();
    if constexpr (Plan::splits) model_.enter(view, w, call, name, What == measure::sums);
    if constexpr (Plan::shards || Plan::splits)
      each_partial<What>([&](std::span<double> x) {
        require_cuda(cudaMemsetAsync(x.data(), 0, x.size_bytes(), storage_.stream), "cudaMemsetAsync");
      });
    launch(measure_chunks<Plan, What>, storage_.own_chunks, chunk_threads, storage_.stream, view, w, call);
    if constexpr (Plan::shards) each_partial<What>([&](std::span<double> x) { ranks_.add(x.data(), std::ssize(x)); });
    if constexpr (Plan::splits) {
      // Who is in the call comes last, before the sums of the norm or after those of the rule: if it is complete, so is
      // what ranks have added before it.
      if constexpr (Plan::clips_rows && What != measure::sums)
        if (storage_.shared_row_sums > 0) model_.add(view.clipped.partial, storage_.shared_row_sums);
      std::span<double> const x = partials<What>();
      model_.add(What == measure::sums ? x.data() : x.data() - model_met, std::ssize(x) + model_met);
    }
  }

  /// Whether ranks meet in this call of step(). True with one rank. `agree` is for agree_every.
  template <class Groups, class Agree>
  bool meets([[maybe_unused]] Groups const& groups, [[maybe_unused]] step_call const& call,
             [[maybe_unused]] Agree const& agree) {
    if constexpr (Plan::splits) model_.check();
    if constexpr (Plan::parallel || Plan::splits) {
      if constexpr (Plan::parallel) ranks_.check();
      if constexpr (Plan::overlaps)
        if (needs_marks(call)) ranks_.require_marks(groups, "step()");
      bool const complete = meetings_.count(storage_.policies, call, storage_.capturing(), agree);
      if constexpr (Plan::overlaps)
        if (!complete) ranks_.end_unsent();
      return complete;
    } else return true;
  }
  /// Whether this micro-batch sends gradients.
  bool sends() const { return meetings_.sends(storage_.policies); }
  bool batches_wait() const { return meetings_.batches_wait(); }

  /// The factor that turns gradients in memory into true gradients. Waits for the stream.
  double inverse(control_block const& c, loss_scale_state const& scale, step_call const& call) const {
    typename Plan::policies policies = storage_.policies;
    collective_sums now;
    if constexpr (Plan::parallel) now = ranks_.read_now(), get<kind::parallel>(policies).now = &now;
    if constexpr (has<Plan, kind::gradient_factor>) {
      auto& factor = get<kind::gradient_factor>(policies);
      std::remove_cvref_t<decltype(*factor.where)> there;
      storage_.read_back(&there, factor.where, 1);
      factor.where = &there;
      return gradient_factor<Plan>(c, policies, scale, call);
    }
    return gradient_factor<Plan>(c, policies, scale, call);
  }

 private:
  /// The partial sums that a read-only pass writes.
  template <measure What> std::span<double> partials() const {
    device_view<Plan> const view = storage_.norm_view();
    std::int64_t const chunks = view.all_chunk_count();
    constexpr int first = What == measure::sums ? Plan::norm_sums : 0;
    return {view.partial + first * chunks, std::size_t(measured<Plan, What> * chunks)};
  }
  /// Calls f(array) for them and for those of rows.
  template <measure What, class F> void each_partial(F const& f) const {
    f(partials<What>());
    if constexpr (Plan::clips_rows && What != measure::sums)
      if (storage_.row_sums > 0) f(std::span(storage_.view.clipped.partial, std::size_t(storage_.row_sums)));
  }

  cuda_storage<Plan>& storage_;
  cuda_ranks<Plan>& ranks_;
  cuda_model<Plan>& model_;
  meetings<Plan> meetings_;
};

}  // namespace descent::detail
