// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/step/layout.hpp>
#include <descent/detail/step/report_of.hpp>
#include <descent/detail/step/row_clip.hpp>
#include <descent/detail/step/row_moves.hpp>
#include <descent/detail/step/terms.hpp>
#include <descent/detail/util/summation_order.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

/// The part of the host engine that decides a step: the control block, the totals of the read-only passes, the clip
/// factors and the terms of each group or tensor. It reads and writes no parameter.
namespace descent::detail {

template <class Plan> struct host_control {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

  host_control(tensors const& where, std::vector<entry> const& groups, typename Plan::policies const& policies)
      : where(where), policies(policies), block(start_of<Plan>(policies)),
        partial(std::size_t(sums_per_chunk * where.chunks())),
        units(Plan::unit_per_tensor ? where.tensors.size() : groups.size()), memories(units.size()),
        next_memories(units.size()),
        factors(Plan::clip_over == scope::tensor ? where.tensors.size() : groups.size(), 1), row_clip(where),
        kept(block) {
    rules.reserve(groups.size());
  }

  static constexpr int sums_per_chunk = (Plan::measures ? Plan::norm_sums : 0) + int(Plan::sum_count);

  loss_scale_state const& scale() const {
    if constexpr (Plan::shares_scale) return get<kind::loss_scale>(policies).shared->state;
    else return block.scale;
  }

  /// Room for the partial sums of the norm in a plan that measures nothing during a step.
  void make_norm_partials() { partial.resize(std::size_t(std::max(sums_per_chunk, Plan::norm_sums) * where.chunks())); }
  double& partial_at(int row, std::int64_t chunk) { return partial[std::size_t(row * where.chunks() + chunk)]; }
  double const* partials(int row) const { return partial.data() + row * where.chunks(); }

  /// What a step changes before it changes elements, to be put back when a function of the caller's throws.
  void keep() { kept = block; }
  void put_back() {
    if (block.step != kept.step) exchange_memories();
    block = kept;
  }

  /// Calls for nothing what the next step calls of the caller's and can be called without a gradient.
  void rehearse(std::vector<entry> const& groups) const {
    std::int64_t const t = block.step + 1;
    find_step_terms<Plan>(groups[0].rule, policies, t);
    for (std::size_t u = 0; u < units.size(); ++u) {
      auto const g = Plan::unit_per_tensor ? std::size_t(where.tensors[u].group) : u;
      memory_of<rule> memory = memories[u];
      terms_of<Plan>(groups[g], policies, t, 1, &memory, 0, rates_of(block));
    }
  }

  void prepare(std::vector<entry> const& groups) {
    sum_terms.clear();
    rate_change const rates = rates_of(block);
    std::size_t const count = Plan::sum_terms_per_tensor ? where.tensors.size() : groups.size();
    for (std::size_t u = 0; u < count; ++u) {
      auto const g = Plan::sum_terms_per_tensor ? std::size_t(where.tensors[u].group) : u;
      sum_terms.push_back(
          terms_for_sums<Plan>(groups[g], policies, block.step + 1, memories.data(), std::int64_t(u), rates));
    }
    sum_step_terms = find_step_terms<Plan>(groups[0].rule, policies, block.step + 1);
  }

  double total(int i) const {
    auto const value = [&](std::int64_t c) { return partials(i)[c]; };
    return row_total<Plan, total_threads>(i, value, where.chunks());
  }
  double tensor_total(int i, std::size_t t) const {
    auto const& x = where.tensors[t];
    auto const value = [&](std::int64_t c) { return partials(i)[x.first_chunk + c]; };
    return row_total<Plan, warp>(i, value, chunks_of(x.count));
  }

  /// The factors of groups or tensors that are clipped by themselves.
  void find_factors() {
    double const inverse = block.factor;
    for (std::size_t u = 0; u < factors.size(); ++u) {
      if constexpr (Plan::clips_rows)
        if (row_clip.rows.of[u].several()) {
          factors[u] = inverse;
          block.clip = min(block.clip, find_row_factors(u));
          continue;
        }
      norm_totals const x = norm_totals_from<Plan>([&](int i) {
        if constexpr (Plan::clip_over == scope::tensor) return tensor_total(i, u);
        auto const value = [&](std::int64_t t) {
          return where.tensors[std::size_t(t)].group == int(u) ? tensor_total(i, std::size_t(t)) : 0;
        };
        return row_total<Plan, warp>(i, value, std::int64_t(where.tensors.size()));
      });
      double const factor = clip_factor<Plan>(policies, x, inverse);
      factors[u] = inverse * factor;
      block.clip = min(block.clip, factor);
    }
  }
  /// The smallest of those of a tensor's rows.
  double find_row_factors(std::size_t u) {
    row_pieces const& rows = row_clip.rows.of[u];
    double smallest = 1;
    for (std::int64_t row = 0; row < where.tensors[u].count / rows.columns; ++row) {
      auto const x = totals_of_row<Plan>(rows, row, row_clip.partial.data(), row_clip.rows.pieces);
      double const factor = clip_factor<Plan>(policies, x, block.factor);
      row_clip.factors[std::size_t(rows.first_row + row)] = real(block.factor * factor);
      smallest = min(smallest, factor);
    }
    return smallest;
  }

  /// The terms of the next update, and what is wrong with them. Memories change with advance().
  term_fault find_terms(std::vector<entry> const& groups) {
    std::int64_t const t = block.step + 1;
    rate_change const rates = rates_of(block);
    if constexpr (Plan::per_row_step) find_rules(groups, t - 1);
    step_terms = find_step_terms<Plan>(groups[0].rule, policies, t);
    if (!is_sound(step_terms)) return {term_fault::policies};
    auto const fault = [&](auto const& x, std::size_t u, std::size_t g, term_fault::place what) {
      return fault_of(x, scheduled(groups[g].rule, policies, t - 1, groups[g].number, rates), std::int64_t(u), what);
    };
    for (std::size_t u = 0; u < sum_terms.size(); ++u)
      if (!is_sound(sum_terms[u]))
        return fault(sum_terms[u], u, Plan::sum_terms_per_tensor ? std::size_t(where.tensors[u].group) : u,
                     term_fault::sums);
    if constexpr (has_memory<rule>) next_memories = memories;
    [[maybe_unused]] double totals[Plan::sum_count + 1];
    if constexpr (Plan::sums && !Plan::sums_per_tensor)
      for (int c = 0; c < int(Plan::sum_count); ++c) totals[c] = total(Plan::norm_sums + c);
    for (std::size_t u = 0; u < units.size(); ++u) {
      auto const g = Plan::unit_per_tensor ? std::size_t(where.tensors[u].group) : u;
      double factor = block.factor;
      if constexpr (Plan::clip_over != scope::model) factor = factors[Plan::clip_over == scope::tensor ? u : g];
      if constexpr (Plan::sums_per_tensor)
        for (int c = 0; c < int(Plan::sum_count); ++c) totals[c] = tensor_total(Plan::norm_sums + c, u);
      auto* const next = next_memories.data();
      if constexpr (Plan::sums)
        units[u] = terms_of<Plan>(groups[g], policies, t, factor, totals, 1, next, std::int64_t(u), rates);
      else units[u] = terms_of<Plan>(groups[g], policies, t, factor, next, std::int64_t(u), rates);
      if (is_sound(units[u])) continue;
      if (!is_idle<Plan>(has_elements(u), totals, 1)) return fault(units[u], u, g, term_fault::term);
      units[u] = {{}, 0, true};
      next[u] = memories[u];
    }
    return {};
  }
  /// Whether anything follows the rule that has this unit.
  bool has_elements(std::size_t u) const {
    if constexpr (Plan::unit_per_tensor) return where.tensors[u].count > 0 && !where.tensors[u].matrix;
    else return where.rule_chunks > 0;
  }
  /// The update takes place.
  void advance(std::vector<entry> const& groups) {
    detail::advance<Plan>(block, groups[0].rule, policies);
    exchange_memories();
  }

  /// The rules of the groups as they are after so many steps.
  void find_rules(std::vector<entry> const& groups, std::int64_t step) {
    rules.clear();
    for (entry const& g : groups) rules.push_back(scheduled(g.rule, policies, step, g.number, rates_of(block)));
  }

  /// With the matrix rules of the groups, if there are any.
  template <class... Rule>
  void check_schedules(std::vector<entry> const& groups, std::int64_t step, Rule const*... of_matrices) const {
    for (int g = 0; g < int(groups.size()); ++g) {
      check_scheduled(scheduled(groups[std::size_t(g)].rule, policies, step, g), step, g);
      (check_scheduled(scheduled_for_matrices(of_matrices[g], policies, step, g), step, g), ...);
    }
    check_terms<Plan>(where, groups, policies, step + 1, memories, rates_of(block));
  }

  /// Finds the first chunk whose gradients are not finite, if that is why the step was skipped.
  void find_bad_chunk() {
    if (block.waiting || block.fault.what != term_fault::none) return;
    for (block.bad_chunk = 0; block.bad_chunk < where.chunks(); ++block.bad_chunk)
      if (!norm_totals_from<Plan>([&](int i) { return partials(i)[block.bad_chunk]; }).finite()) return;
    block.bad_chunk = -1;
  }

  /// Takes over what is no element's.
  void take(host_control const& old, std::vector<row_move> const& moves) {
    block = old.block;
    for (std::size_t u = 0; u < memories.size(); ++u) {
      std::int64_t const from = !Plan::unit_per_tensor ? std::int64_t(u) : moves[u].old;
      if (from >= 0 && std::size_t(from) < old.memories.size()) memories[u] = old.memories[std::size_t(from)];
    }
  }

  tensors where;
  typename Plan::policies policies;
  control_block block;
  std::vector<double> partial;
  std::vector<unit_terms<rule, real>> units, sum_terms;
  step_terms_of<Plan> step_terms{}, sum_step_terms{};
  std::vector<memory_of<rule>> memories, next_memories;  // before the update, and behind it
  std::vector<rule> rules;  // each group's, where elements need more of it than its terms
  std::vector<double> factors;
  [[no_unique_address]] host_row_clip<Plan> row_clip;
  control_block kept;

 private:
  /// By elements: callers may have a view of memories.
  void exchange_memories() {
    if constexpr (has_memory<rule>) std::swap_ranges(memories.begin(), memories.end(), next_memories.begin());
  }
};

}  // namespace descent::detail
