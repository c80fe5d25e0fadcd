// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/launch.cuh>
#include <descent/ranks/detail/cuda_rank_calls.cuh>
#include <descent/ranks/detail/cuda_rank_kernels.cuh>
#include <descent/engine/cuda/single_rank.hpp>
#include <descent/ranks/detail/model_layout.hpp>
#include <descent/engine/step/row_clip.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

/// The CUDA backend's part of a model that ranks hold together. Everything is enqueued. The kernel that decides a step
/// recognizes what an aborted collective leaves, and does not use it.
namespace descent::detail {

template <class Plan>
requires(Plan::splits)
class cuda_model<Plan> : public device_rank_calls<typename Plan::model_policy::communicator_type> {
  using tensors = layout<typename Plan::value, typename Plan::gradient>;
  using comm_type = typename Plan::model_policy::communicator_type;
  static_assert(comm_type::on_device, "cuda{} needs a communicator for device memory, such as comm::nccl");
  static_assert(!grows_batch<typename Plan::accumulation>,
                "accumulate_by cannot be combined with ranks on cuda{}: the host must know which calls update");
  using calls = device_rank_calls<comm_type>;
  using calls::comm_, calls::stream_;

 public:
  /// Waits for all ranks. Throws std::invalid_argument if they have other rules, policies or groups, or their
  /// parameters are no model.
  template <class Groups>
  void join(tensors const& where, Groups const& groups, typename Plan::policies const& policies,
            cudaStream_t const& stream) {
    auto const facts = [&] {
      auto all = facts_of<Plan, false>(where, groups, policies);
      if constexpr (Plan::shares_scale)
        all.push_back(fact_of_shared(calls::read(&get<kind::loss_scale>(policies).shared->state)));
      return all;
    };
    try {
      calls::join_with(*get<kind::model>(policies).comm, stream, "the constructor with model_parallel", facts,
                       [&](auto& over) { return find_model(model_, where, over); });
    } catch (std::exception const& e) {  // the ranks of the other communicator wait as well
      if constexpr (Plan::parallel)
        get<kind::parallel>(policies).comm->abort(std::string("model_parallel: ") + e.what());
      throw;
    }
    start_ = {0, double(comm_->size()), hash_of(groups, policies)};
    meeting_ = comm_->name_meeting("sums over the model");
  }
  /// Of the groups, which ranks compare.
  template <class Groups>
  static std::uint64_t hash_of(Groups const& groups, typename Plan::policies const& policies) {
    return hash_of_groups<Plan>(groups, policies);
  }
  tensors const& whole() const { return model_.whole; }
  std::size_t unit(std::size_t tensor) const { return model_.number[tensor]; }
  all_row_pieces rows_of(tensors const& where) const { return {where, model_}; }

  void add_to(device_arena& arena) {
    std::vector<std::int32_t> number(model_.number.begin(), model_.number.end());
    arena.add_copy(tensors_, model_.whole.tensors);
    arena.add_copy(number_of_, number);
    arena.add_copy(shift_, model_.shift);
    arena.add_copy(element_shift_, model_.element_shift);
    arena.add_copy(counts_, model_.counts);
    arena.add_copy(calls_, std::array{start_});
    arena.add(before_, 1);
  }
  void show_in(device_view<Plan>& view) const {
    view.model = {tensors_, model_.whole.chunks(), std::int32_t(model_.whole.tensors.size()), number_of_, shift_,
                  element_shift_, counts_, calls_, before_, comm_->marks()};
  }

  /// Before a read-only pass: says that this rank is in the call. `sums`: whether the pass only finds the rule's sums,
  /// after another that has begun the meeting.
  void enter(device_view<Plan> const& v, control_view<Plan> const& w, step_call const& call, char const* name,
             bool sums) {
    launch(enter_model<Plan>, 1, 1, *stream_, v, w, call, calls::call_of(name), sums ? -1 : meeting_);
  }
  /// Ends a meeting after which no kernel decides a step.
  void leave(device_view<Plan> const& v) { launch(leave_model<Plan>, 1, 1, *stream_, v); }

 private:
  int meeting_ = 0;
  model_layout<tensors> model_;
  model_calls start_;
  tensor_record<typename Plan::value, typename Plan::gradient>* tensors_ = nullptr;
  std::int32_t* number_of_ = nullptr;
  std::int64_t *shift_ = nullptr, *element_shift_ = nullptr;
  std::uint8_t* counts_ = nullptr;
  model_calls* calls_ = nullptr;
  control_block* before_ = nullptr;
};

}  // namespace descent::detail
