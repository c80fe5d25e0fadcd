// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/ranks/detail/host_rank_calls.hpp>
#include <descent/engine/host/single_rank.hpp>
#include <descent/ranks/detail/model_layout.hpp>
#include <descent/engine/step/plan.hpp>
#include <descent/engine/step/row_clip.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

/// The host backend's part of a model that ranks hold together.
namespace descent::detail {

template <class Plan>
requires(Plan::splits) class host_model<Plan> : public rank_calls<typename Plan::model_policy::communicator_type> {
  using tensors = layout<typename Plan::value, typename Plan::gradient>;
  using comm_type = typename Plan::model_policy::communicator_type;
  static_assert(!comm_type::on_device, "host{} needs a communicator for host memory, such as comm::threads");
  using calls = rank_calls<comm_type>;
  using calls::comm_, calls::ranks_;

 public:
  /// Waits for all ranks. Throws std::invalid_argument if they have other rules, policies or groups, or their
  /// parameters are no model.
  template <class Groups>
  host_model(tensors const& where, Groups const& groups, typename Plan::policies const& policies)
      : calls(*get<kind::model>(policies).comm) {
    try {
      auto const facts = [&] {
        auto all = facts_of<Plan, false>(where, groups, policies);
        if constexpr (Plan::shares_scale) all.push_back(fact_of_shared(get<kind::loss_scale>(policies).shared->state));
        return all;
      };
      calls::join_with(facts, [&] { return find_model(model_, where, comm_); });
      set_groups(groups, policies);
    } catch (std::exception const& e) {  // the ranks of the other communicator wait as well
      if constexpr (Plan::parallel)
        get<kind::parallel>(policies).comm->abort(std::string("model_parallel: ") + e.what());
      throw;
    }
  }

  template <class Groups> void set_groups(Groups const& groups, typename Plan::policies const& policies) {
    calls::set_groups_hash(hash_of_groups<Plan>(groups, policies));
  }

  template <class Control> double hash_of(char const* name, Control const& of, step_call const& call) const {
    return calls::hash_of(name, of.block, of.scale(), hash_of_weight<Plan>(of.block, of.policies, call));
  }

  static constexpr std::size_t extra = 2;
  tensors const& whole() const { return model_.whole; }
  std::int64_t chunk(std::int64_t own, std::size_t tensor) const { return model_.chunk(own, tensor); }
  std::size_t unit(std::size_t tensor) const { return model_.number[tensor]; }
  std::int64_t element_shift(std::size_t tensor) const { return model_.element_shift[tensor]; }
  all_row_pieces rows_of(tensors const& where) const { return {where, model_}; }
  bool counts(std::size_t tensor) const { return model_.counts[tensor]; }

  /// Sums x over ranks. Each element comes from one rank; the others have 0. The last two elements say which ranks are
  /// in it, and in which call, which `facts` describes.
  template <class Facts> void add(std::vector<double>& x, double call, char const* name, Facts const& facts) {
    double* const last = x.data() + x.size() - extra;
    last[0] = 1, last[1] = call;
    comm_.all_reduce(x.data(), std::int64_t(x.size()));
    if (last[0] != ranks_ || last[1] != ranks_ * call) calls::refuse_call(name, facts());
  }
  /// The same for the partial sums of rows that several ranks have columns of, after the call was found to be the same.
  void add_rows(double* x, std::int64_t n) {
    if (n > 0) comm_.all_reduce(x, n);
  }

 private:
  model_layout<tensors> model_;
};

}  // namespace descent::detail
