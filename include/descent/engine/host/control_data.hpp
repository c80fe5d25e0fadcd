// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/single_rank.hpp>
#include <descent/engine/step/controller.hpp>
#include <descent/engine/step/report_of.hpp>
#include <descent/engine/step/row_moves.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/core/detail/summation_order.hpp>

#include <cstdint>
#include <vector>

/// The data of the host engine's controller: the control block, the partial sums of the read-only passes, the clip
/// factors and the terms of each group or tensor.
namespace descent::detail {

/// The controller's only thread. Its functions are for the host, although nvcc needs them declared for both sides.
struct one_thread {
  DESCENT_HD static bool first() { return true; }
  DESCENT_HD static bool first_of_warp() { return true; }
  DESCENT_HD static void sync() {}
  DESCENT_HD static bool all(bool x) { return x; }
  DESCENT_HD static double smallest(double x) { return x; }
  DESCENT_CALLS
  template <class Index, class F> DESCENT_HD static void each(Index count, F const& f) {
    for (Index i = 0; i < count; ++i) f(i);
  }
  DESCENT_CALLS
  template <class F> DESCENT_HD static void each_warp(int count, F const& f) { each(count, f); }
  /// The total of value(i), added in the order of a device's block; warp_total() adds in the order of a warp.
  DESCENT_CALLS
  template <class Value> DESCENT_HD static double total(bool largest, std::int64_t count, Value const& value) {
    return strided_total<total_threads>(largest, count, value);
  }
  DESCENT_CALLS
  template <class Value> DESCENT_HD static double warp_total(bool largest, std::int64_t count, Value const& value) {
    return strided_total<warp>(largest, count, value);
  }
  /// The first i with f(i), or count.
  DESCENT_CALLS
  template <class F> DESCENT_HD static std::int64_t find(std::int64_t count, F const& f) {
    std::int64_t i = 0;
    while (i < count && !f(i)) ++i;
    return i;
  }
};

template <class Plan> struct host_control {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

  host_control(tensors const& of, plain_vector<entry> const& groups, typename Plan::policies const& with)
      : where(of), policies(with), model(where, groups, policies), block(start_of<Plan>(policies)),
        partial(room_for(sums_per_chunk)),
        totals(Plan::totals_per_tensor ? std::size_t(Plan::norm_sums + Plan::sum_count) * tensor_count() : 0),
        units(Plan::unit_per_tensor ? tensor_count() : groups.size()),
        sum_terms(!Plan::sums                  ? 0
                  : Plan::sum_terms_per_tensor ? tensor_count()
                                               : groups.size()),
        memories(units.size()), next_memories(units.size()), rules(groups.size()),
        factors(Plan::clip_over == scope::tensor ? tensor_count() : groups.size(), 1), row_clip(model.rows_of(where)),
        kept(block) {
    for (std::size_t g = 0; g < groups.size(); ++g) rules[g] = groups[g].rule;
    if constexpr (Plan::clip_over == scope::group) members = group_tensors(model.whole().tensors, groups.size());
  }

  ~host_control() { hold_scale<Plan>(block, policies, false); }
  host_control(host_control const&) = delete;
  host_control& operator=(host_control const&) = delete;

  static constexpr int sums_per_chunk = (Plan::measures ? Plan::norm_sums : 0) + int(Plan::sum_count);

  /// The controller for these groups.
  controller<Plan, one_thread> decider(plain_vector<entry> const& groups) {
    tensors const& all = model.whole();
    control_arrays<Plan> a{block, scale(), policies, all.tensors.data(), groups.data(), int(all.tensors.size()),
                           int(groups.size()), all.chunks(), all.rule_chunks > 0, partial.data(), totals.data(),
                           sums, factors.data(), units.data(), sum_terms.data(), &step_terms, &sum_step_terms,
                           memories.data(), next_memories.data(), rules.data(), {}, {}};
    if constexpr (Plan::clip_over == scope::group)
      a.members.begin = members.begin.data(), a.members.of = members.of.data();
    if constexpr (Plan::clips_rows)
      a.row_clip = {row_clip.rows.of.data(), row_clip.rows.parts.data(), row_clip.partial.data(),
                    row_clip.factors.data()};
    return controller<Plan, one_thread>(a);
  }

  loss_scale_state const& scale() const {
    if constexpr (Plan::shares_scale) return get<kind::loss_scale>(policies).shared->state;
    else return block.scale;
  }

  /// Makes room for the partial sums of the norm in plans whose steps measure nothing.
  void make_norm_partials() {
    partial.resize(room_for(sums_per_chunk > Plan::norm_sums ? sums_per_chunk : Plan::norm_sums));
  }
  double& partial_at(int sum, std::int64_t chunk) {
    auto const tensor = std::size_t(where.tensor_of_chunk[std::size_t(chunk)]);
    return partial[std::size_t(sum * model.whole().chunks() + model.chunk(chunk, tensor))];
  }

  /// keep() saves the control block before a step. put_back() restores it and the memories if the step throws.
  void keep() { kept = block; }
  void put_back(plain_vector<entry> const& groups) {
    if (block.step != kept.step) decider(groups).exchange_memories();
    bool const holds = block.holds_scale;
    block = kept;
    block.holds_scale = holds;
    hold_scale<Plan>(block, policies, block.batches > 0);
  }

  /// Calls the user's functions that the next step will call and that need no gradient, and discards their results.
  void rehearse(plain_vector<entry> const& groups) const {
    std::int64_t const t = block.step + 1;
    find_step_terms<Plan>(groups[0].rule, policies, t);
    for (std::size_t u = 0; u < units.size(); ++u) {
      auto const g = Plan::unit_per_tensor ? std::size_t(model.whole().tensors[u].group) : u;
      memory_of<rule> memory = memories[u];
      terms_of<Plan>(groups[g], policies, t, &memory, 0, rates_of(block));
    }
  }

  /// `of_matrices`: the groups' matrix rules, if there are any.
  template <class... Rule>
  void check_schedules(plain_vector<entry> const& groups, std::int64_t step, Rule const*... of_matrices) const {
    for (int g = 0; g < int(groups.size()); ++g) {
      check_scheduled<real>(scheduled(groups[std::size_t(g)].rule, policies, step, g), step, g);
      (check_scheduled<real>(scheduled_for_matrices(of_matrices[g], policies, step, g), step, g), ...);
    }
    check_terms<Plan>(model.whole(), groups, policies, step + 1, memories, rates_of(block));
  }

  /// Copies the state that belongs to no element.
  void take(host_control const& old, std::vector<row_move> const& moves) {
    block = old.block;
    block.holds_scale = false;
    hold_scale<Plan>(block, policies, block.batches > 0);
    for (std::size_t u = 0; u < memories.size(); ++u) {
      std::int64_t const from = !Plan::unit_per_tensor ? std::int64_t(u) : moves[u].old;
      if (from >= 0 && std::size_t(from) < old.memories.size()) memories[u] = old.memories[std::size_t(from)];
    }
  }

  tensors where;
  typename Plan::policies policies;
  host_model<Plan> model;
  control_block block;
  std::vector<double> partial, totals;  // see control_arrays
  plain_vector<unit_terms_of<Plan>> units, sum_terms;
  step_terms_of<Plan> step_terms{}, sum_step_terms{};
  plain_vector<memory_of<rule>> memories, next_memories;
  plain_vector<rule> rules;
  double sums[Plan::sum_count + 1] = {};
  std::vector<double> factors;
  group_tensors members;  // if groups are clipped separately
  [[no_unique_address]] host_row_clip<Plan> row_clip;
  control_block kept;

 private:
  std::size_t tensor_count() const { return model.whole().tensors.size(); }
  std::size_t room_for(int per_chunk) const { return std::size_t(per_chunk * model.whole().chunks()) + model.extra; }
};

}  // namespace descent::detail
