// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/group_tensors.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/row_clip.hpp>
#include <descent/engine/step/terms.hpp>

#include <cstdint>
#include <utility>

/// Decides a step, for both engines: whether it goes on, the clip factors, and the terms of each group or tensor. Reads
/// and writes no parameter.
namespace descent::detail {

/// Rows that are clipped separately: those of each tensor of the model, the partial sums of their norms, [piece][sum of
/// the norm], and their factors.
template <class Plan, bool = Plan::clips_rows> struct row_clip_view {};
template <class Plan> struct row_clip_view<Plan, true> {
  row_pieces const *of, *parts;
  double* partial;
  typename Plan::real* factors;
};

/// What the controller reads and writes, in the memory of the backend.
template <class Plan> struct control_arrays {
  using rule = typename Plan::rule;
  using real = typename Plan::real;

  control_block& block;
  loss_scale_state const& scale;
  typename Plan::policies const& policies;
  tensor_record<typename Plan::value, typename Plan::gradient> const* tensors;
  group_entry<rule> const* groups;
  int tensor_count, group_count;
  std::int64_t chunk_count;
  bool has_elements;  // whether the rule updates any element
  double const* partial;                       // [sum][chunk]: the norm's if measured, then the rule's
  double* totals;                              // [sum][tensor], the same sums
  double* sums;                                // over the model; visible to all threads
  double* factors;                             // of groups or tensors that are clipped separately
  unit_terms_of<Plan>*units, *sum_terms;    // of the update, and of the sums in the next step
  step_terms_of<Plan>*step_terms, *sum_step_terms;
  memory_of<rule>*memories, *next_memories;    // before the update, and after it
  rule* rules;                                 // of each group, scheduled; if rows count their own updates
  row_clip_view<Plan> row_clip;
  group_tensors_view<Plan> members = {};  // of groups that are clipped separately
  bool met = true;  // whether all ranks that have a part of the model are in the partial sums
};

/// What is not finite in the terms of the matrices in update t. Matrices has count and, for u in [0, count),
/// terms(u, t, rates), stray_field(u, t, rates), rule(u) and tensor(u).
DESCENT_CALLS
template <class Plan, class Matrices>
DESCENT_HD term_fault fault_of_matrices([[maybe_unused]] Matrices const& matrices, std::int64_t t,
                                        rate_change const& rates) {
  if constexpr (Plan::has_matrices)
    for (int u = 0; u < matrices.count; ++u)
      if (auto const x = matrices.terms(u, t, rates); !is_sound(x)) {
        if (auto const fault = matrices.stray_field(u, t, rates); fault.what) return fault;
        return fault_of(x, matrices.rule(u), matrices.tensor(u), term_fault::matrices);
      }
  return {};
}

/// The threads that process the arrays are one thread on the host and one block on a device. They call every function
/// together.
template <class Plan, class Threads> class controller {
  using rule = typename Plan::rule;
  using real = typename Plan::real;

 public:
  DESCENT_HD explicit controller(control_arrays<Plan> const& arrays) : a(arrays) {}

  /// Calls decide() and finds the factors of groups, tensors or rows. Returns whether the step goes on.
  DESCENT_CALLS
  DESCENT_HD bool decide(step_call const& call) const {
    bool const complete = completes<Plan>(a.block, a.policies, call);
    threads.sync();
    norm_totals const x = Plan::measures && complete ? totals() : norm_totals{};
    if (threads.first()) detail::decide<Plan>(a.block, a.policies, a.scale, x, call, a.met);
    threads.sync();
    bool const applied = !Plan::may_skip || a.block.applied;
    if constexpr (Plan::clip_over != scope::model)
      if (applied) find_factors();
    if constexpr (Plan::measures)
      if (!applied && !a.block.waiting && a.block.fault.what == term_fault::none) find_bad_chunk();
    if (!applied && threads.first()) rescale<Plan>(a.block, a.policies);
    return applied;
  }

  /// Finds what find_terms() needs of groups and policies. With Plan::terms_ahead, may be called before decide().
  DESCENT_CALLS
  DESCENT_HD void find_terms_ahead() const {
    std::int64_t const t = a.block.step + 1;
    if constexpr (Plan::has_step_terms)
      if (threads.first()) *a.step_terms = find_step_terms<Plan>(a.groups[0].rule, a.policies, t, rates_of(a.block));
    if constexpr (Plan::sums_per_tensor) add_tensors(Plan::norm_sums, Plan::norm_sums + int(Plan::sum_count));
    else if constexpr (Plan::sums) {
      for (int i = 0; i < int(Plan::sum_count); ++i) {
        double const sum = total(Plan::norm_sums + i);
        if (threads.first()) a.sums[i] = sum;
      }
      threads.sync();
    }
    if constexpr (Plan::per_row_step) find_rules(t - 1);
    threads.each(unit_count(), [&](int u) { find_unit(u, t, rates_of(a.block)); });
  }

  /// Finds the terms of the next update and calls advance(), or skip() if one is not finite. Returns whether all are.
  /// Ahead: find_terms_ahead() has been called.
  DESCENT_CALLS
  template <bool Ahead = false, class Matrices> DESCENT_HD bool find_terms(Matrices const& matrices) const {
    if constexpr (!Ahead) find_terms_ahead();
    std::int64_t const t = a.block.step + 1;
    rate_change const rates = rates_of(a.block);
    bool sound = true;
    if constexpr (Plan::has_step_terms) sound = !threads.first() || is_sound(*a.step_terms);
    threads.each(unit_count(), [&](int u) {
      set_factor(u);
      sound = sound && is_sound(a.units[u]);
    });
    if constexpr (Plan::sums)
      threads.each(sum_terms_count(), [&](int u) { sound = sound && is_sound(a.sum_terms[u]); });
    if constexpr (Plan::has_matrices)
      threads.each(matrices.count, [&](int u) { sound = sound && is_sound(matrices.terms(u, t, rates)); });
    sound = threads.all(sound);

    if (sound) {
      if (threads.first()) advance<Plan>(a.block, a.groups[0].rule, a.policies);
      exchange_memories();  // after all that may throw
    } else {
      if (threads.first()) skip(a.block, find_fault(matrices, t, rates));
      threads.sync();
      if constexpr (!Plan::may_skip) threads.each(unit_count(), [&](int u) { a.units[u].frozen = true; });
    }
    if (threads.first()) rescale<Plan>(a.block, a.policies);
    threads.sync();
    return sound;
  }

  /// Finds the terms that the sums of the next step need.
  DESCENT_CALLS
  DESCENT_HD void prepare() const {
    std::int64_t const t = a.block.step + 1;
    if constexpr (Plan::has_step_terms)
      if (threads.first()) *a.sum_step_terms = find_step_terms<Plan>(a.groups[0].rule, a.policies, t);
    threads.each(sum_terms_count(), [&](int u) {
      auto const& group = a.groups[Plan::sum_terms_per_tensor ? a.tensors[u].group : u];
      a.sum_terms[u] = terms_for_sums<Plan>(group, a.policies, t, a.memories, u, rates_of(a.block));
    });
  }

  /// Finds the groups' rules with their schedules after `step` updates.
  DESCENT_CALLS
  DESCENT_HD void find_rules(std::int64_t step) const {
    threads.each(a.group_count, [&](int g) {
      a.rules[g] = scheduled(a.groups[g].rule, a.policies, step, a.groups[g].number, rates_of(a.block));
    });
  }

  /// Swaps each unit's memory before the update with that after it.
  DESCENT_CALLS
  DESCENT_HD void exchange_memories() const {
    if constexpr (has_memory<rule>)
      threads.each(unit_count(), [&](int u) {
        memory_of<rule> const before = a.memories[u];
        a.memories[u] = a.next_memories[u];
        a.next_memories[u] = before;
      });
  }

  /// The totals of the norm; valid in the first thread only.
  DESCENT_CALLS
  DESCENT_HD norm_totals totals() const {
    return norm_totals_from<Plan>([&](int i) { return total(i); });
  }

 private:
  /// The total of sum i over all chunks; valid in the first thread only.
  DESCENT_CALLS
  DESCENT_HD double total(int i) const {
    double const* x = a.partial + i * a.chunk_count;
    return threads.total(Plan::keeps_largest(i), a.chunk_count, [&](std::int64_t c) { return x[c]; });
  }

  /// Adds up sums [first, last) of each tensor.
  DESCENT_CALLS
  DESCENT_HD void add_tensors(int first, int last) const {
    threads.each_warp(a.tensor_count, [&](int u) {
      std::int64_t const count = chunks_of(a.tensors[u].count);
      for (int i = first; i < last; ++i) {
        double const* x = a.partial + i * a.chunk_count + a.tensors[u].first_chunk;
        double const sum = threads.warp_total(Plan::keeps_largest(i), count, [&](std::int64_t c) { return x[c]; });
        if (threads.first_of_warp()) a.totals[std::int64_t(i) * a.tensor_count + u] = sum;
      }
    });
    threads.sync();
  }

  DESCENT_CALLS
  DESCENT_HD void find_factors() const {
    add_tensors(0, Plan::norm_sums);
    double const inverse = a.block.factor;
    double smallest = 1;
    auto const total_of = [&](int i, std::int64_t u) { return a.totals[std::int64_t(i) * a.tensor_count + u]; };
    auto const set = [&](int u, norm_totals const& x) {
      double const factor = clip_factor<Plan>(a.policies, x, inverse);
      a.factors[u] = inverse * factor;
      smallest = min(smallest, factor);
    };
    if constexpr (Plan::clip_over == scope::tensor) {
      threads.each(a.tensor_count, [&](int u) {
        if constexpr (Plan::clips_rows)
          if (a.row_clip.of[u].units) {
            a.factors[u] = inverse;
            return;
          }
        set(u, norm_totals_from<Plan>([&](int i) { return total_of(i, u); }));
      });
      if constexpr (Plan::clips_rows)
        for (int u = 0; u < a.tensor_count; ++u) smallest = min(smallest, find_row_factors(u));
    } else {
      threads.each_warp(a.group_count, [&](int g) {
        std::int32_t const* const of = a.members.of + a.members.begin[g];
        std::int64_t const count = a.members.begin[g + 1] - a.members.begin[g];
        auto const x = norm_totals_from<Plan>([&](int i) {
          return threads.warp_total(Plan::keeps_largest(i), count, [&](std::int64_t k) { return total_of(i, of[k]); });
        });
        if (threads.first_of_warp()) set(g, x);
      });
    }
    smallest = threads.smallest(smallest);
    if (threads.first()) a.block.clip = smallest;
    threads.sync();
  }

  /// Finds the factors of a tensor's rows on this rank. Returns this thread's smallest, or 1 if the tensor is one unit.
  DESCENT_CALLS
  DESCENT_HD double find_row_factors(int u) const {
    row_pieces const rows = a.row_clip.of[u];
    double smallest = 1;
    if (!rows.units) return smallest;
    threads.each(rows.rows, [&](std::int64_t row) {
      auto const x = totals_of_row<Plan>(rows, a.row_clip.parts, row, a.row_clip.partial);
      double const factor = clip_factor<Plan>(a.policies, x, a.block.factor);
      a.row_clip.factors[rows.first_row + row] = real(a.block.factor * factor);
      smallest = min(smallest, factor);
    });
    return smallest;
  }

  /// Finds the first chunk whose gradients are not finite.
  DESCENT_CALLS
  DESCENT_HD void find_bad_chunk() const {
    std::int64_t const bad = threads.find(a.chunk_count, [&](std::int64_t c) {
      return !norm_totals_from<Plan>([&](int i) { return a.partial[i * a.chunk_count + c]; }).finite();
    });
    if (threads.first()) a.block.bad_chunk = bad < a.chunk_count ? bad : -1;
  }

  DESCENT_CALLS
  DESCENT_HD int unit_count() const { return Plan::unit_per_tensor ? a.tensor_count : a.group_count; }
  DESCENT_CALLS
  DESCENT_HD int sum_terms_count() const { return Plan::sum_terms_per_tensor ? a.tensor_count : a.group_count; }
  DESCENT_CALLS
  DESCENT_HD int group_of_unit(int u) const { return Plan::unit_per_tensor ? a.tensors[u].group : u; }

  /// Finds the terms of unit u in update t.
  DESCENT_CALLS
  DESCENT_HD void find_unit(int u, std::int64_t t, rate_change const& rates) const {
    int const g = group_of_unit(u);
    if constexpr (has_memory<rule>) a.next_memories[u] = a.memories[u];
    if constexpr (Plan::sums)
      a.units[u] = terms_of<Plan>(a.groups[g], a.policies, t, sums_of(u), sums_stride(), a.next_memories, u, rates);
    else a.units[u] = terms_of<Plan>(a.groups[g], a.policies, t, a.next_memories, u, rates);
  }

  /// Sets the factor of unit u. Freezes the unit if it is not sound, but updates nothing.
  DESCENT_CALLS
  DESCENT_HD void set_factor(int u) const {
    double factor = a.block.factor;
    if constexpr (Plan::clip_over == scope::tensor) factor = a.factors[u];
    else if constexpr (Plan::clip_over != scope::model) factor = a.factors[group_of_unit(u)];
    auto& unit = a.units[u];
    if (!unit.frozen) unit.factor = real(factor);
    if (!is_sound(unit) && is_idle<Plan>(has_elements(u), sums_of(u), sums_stride())) {
      unit = {{}, 0, true};
      if constexpr (has_memory<rule>) a.next_memories[u] = a.memories[u];
    }
  }

  /// The sums of unit u, one every sums_stride().
  DESCENT_CALLS
  DESCENT_HD double const* sums_of([[maybe_unused]] int u) const {
    if constexpr (Plan::sums_per_tensor) return a.totals + std::int64_t(Plan::norm_sums) * a.tensor_count + u;
    else return a.sums;
  }
  DESCENT_CALLS
  DESCENT_HD std::int64_t sums_stride() const { return Plan::sums_per_tensor ? a.tensor_count : 1; }

  /// Whether the rule updates any element of this tensor; where units are groups, any element at all.
  DESCENT_CALLS
  DESCENT_HD bool has_elements(int u) const {
    if constexpr (Plan::unit_per_tensor) return a.tensors[u].count > 0 && !a.tensors[u].matrix;
    else return a.has_elements;
  }

  /// Finds what is not finite, or which field is out of its range. Called by one thread.
  DESCENT_CALLS
  template <class Matrices>
  DESCENT_HD term_fault find_fault(Matrices const& matrices, std::int64_t t, rate_change const& rates) const {
    if constexpr (follows_steps<typename Plan::policies>)
      for (int g = 0; g < a.group_count; ++g) {
        if (a.groups[g].frozen) continue;
        auto const fault = stray_field_of<real, typename Plan::policies>(
            scheduled(a.groups[g].rule, a.policies, t - 1, a.groups[g].number, rates), g, term_fault::field);
        if (fault.what) return fault;
      }
    if constexpr (Plan::has_step_terms)
      if (!is_sound(*a.step_terms)) return {term_fault::policies};
    auto const fault = [&](auto const& x, int u, int g, term_fault::place what) {
      return fault_of(x, scheduled(a.groups[g].rule, a.policies, t - 1, a.groups[g].number, rates), u, what);
    };
    if constexpr (Plan::sums)
      for (int u = 0; u < sum_terms_count(); ++u)
        if (!is_sound(a.sum_terms[u]))
          return fault(a.sum_terms[u], u, Plan::sum_terms_per_tensor ? a.tensors[u].group : u, term_fault::sums);
    for (int u = 0; u < unit_count(); ++u)
      if (!is_sound(a.units[u])) return fault(a.units[u], u, group_of_unit(u), term_fault::term);
    return fault_of_matrices<Plan>(matrices, t, rates);
  }

  control_arrays<Plan> a;
  [[no_unique_address]] Threads threads;
};

}  // namespace descent::detail
