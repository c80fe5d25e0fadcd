// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/step/layout.hpp>
#include <descent/detail/step/report_of.hpp>
#include <descent/detail/step/row_clip.hpp>
#include <descent/detail/step/row_moves.hpp>
#include <descent/detail/step/terms.hpp>
#include <descent/detail/util/reduce.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

/// The host's side of the control block: totals of what was measured, factors and terms of each group or tensor. It
/// never touches a parameter.
namespace descent::detail {

template <class Plan> class host_control {
 protected:
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

  host_control(tensors const& where, std::vector<entry> const& groups, typename Plan::policies const& policies)
      : where_(where), policies_(policies), control_(start_of<Plan>(policies)),
        partial_(std::size_t(rows * where.chunks())),
        units_(Plan::unit_per_tensor ? where.tensors.size() : groups.size()), memories_(units_.size()),
        next_memories_(units_.size()),
        factors_(Plan::clip_over == scope::tensor ? where.tensors.size() : groups.size(), 1), row_clip_(where),
        kept_(control_) {
    scheduled_.reserve(groups.size());
  }

  std::span<memory_of<rule>> memories() { return memories_; }

  static constexpr int rows = (Plan::measures ? Plan::norm_rows : 0) + int(Plan::sum_count);

  loss_scale_state const& scale() const {
    if constexpr (Plan::shares_scale) return static_cast<typename Plan::loss_scale const&>(policies_).shared->state;
    else return control_.scale;
  }

  double& partial_at(int row, std::int64_t chunk) { return partial_[std::size_t(row * where_.chunks() + chunk)]; }
  double const* row(int i) const { return partial_.data() + i * where_.chunks(); }

  /// What a step changes before it changes elements, to be put back when a function of the caller's throws.
  void keep() { kept_ = control_; }
  void put_back() {
    if (control_.step != kept_.step) exchange_memories();
    control_ = kept_;
  }

  /// Calls for nothing what the next step calls of the caller's and can be called without a gradient.
  void rehearse(std::vector<entry> const& groups) const {
    std::int64_t const t = control_.step + 1;
    find_step_terms<Plan>(groups[0].rule, policies_, t);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      auto const g = Plan::unit_per_tensor ? std::size_t(where_.tensors[u].group) : u;
      memory_of<rule> memory = memories_[u];
      terms_of<Plan>(groups[g], policies_, t, 1, &memory, 0, rates_of(control_));
    }
  }

  void prepare(std::vector<entry> const& groups) {
    pending_.clear();
    rate_change const rates = rates_of(control_);
    std::size_t const count = Plan::pending_per_tensor ? where_.tensors.size() : groups.size();
    for (std::size_t u = 0; u < count; ++u) {
      auto const g = Plan::pending_per_tensor ? std::size_t(where_.tensors[u].group) : u;
      pending_.push_back(
          terms_for_sums<Plan>(groups[g], policies_, control_.step + 1, memories_.data(), std::int64_t(u), rates));
    }
    pending_step_ = find_step_terms<Plan>(groups[0].rule, policies_, control_.step + 1);
  }

  double total(int i) const {
    auto const value = [&](std::int64_t c) { return row(i)[c]; };
    return row_total<Plan, total_threads>(i, value, where_.chunks());
  }
  double tensor_total(int i, std::size_t t) const {
    auto const& x = where_.tensors[t];
    auto const value = [&](std::int64_t c) { return row(i)[x.first_chunk + c]; };
    return row_total<Plan, warp>(i, value, chunks_of(x.count));
  }

  /// The factors of groups or tensors that are clipped by themselves.
  void find_factors() {
    double const inverse = control_.factor;
    for (std::size_t u = 0; u < factors_.size(); ++u) {
      if constexpr (Plan::clips_rows)
        if (row_clip_.rows.of[u].several()) {
          factors_[u] = inverse;
          control_.clip = min(control_.clip, find_row_factors(u));
          continue;
        }
      norm_totals const x = norm_totals_from<Plan>([&](int i) {
        if constexpr (Plan::clip_over == scope::tensor) return tensor_total(i, u);
        auto const value = [&](std::int64_t t) {
          return where_.tensors[std::size_t(t)].group == int(u) ? tensor_total(i, std::size_t(t)) : 0;
        };
        return row_total<Plan, warp>(i, value, std::int64_t(where_.tensors.size()));
      });
      double const factor = clip_factor<Plan>(policies_, x, inverse);
      factors_[u] = inverse * factor;
      control_.clip = min(control_.clip, factor);
    }
  }
  /// The smallest of those of a tensor's rows.
  double find_row_factors(std::size_t u) {
    row_pieces const& rows = row_clip_.rows.of[u];
    double smallest = 1;
    for (std::int64_t row = 0; row < where_.tensors[u].count / rows.columns; ++row) {
      auto const x = totals_of_row<Plan>(rows, row, row_clip_.partial.data(), row_clip_.rows.pieces);
      double const factor = clip_factor<Plan>(policies_, x, control_.factor);
      row_clip_.factors[std::size_t(rows.first_row + row)] = real(control_.factor * factor);
      smallest = min(smallest, factor);
    }
    return smallest;
  }

  /// The terms of the next update, and what is wrong with them. Memories change with advance().
  term_fault find_terms(std::vector<entry> const& groups) {
    std::int64_t const t = control_.step + 1;
    rate_change const rates = rates_of(control_);
    if constexpr (Plan::own_updates) find_rules(groups, t - 1);
    step_terms_ = find_step_terms<Plan>(groups[0].rule, policies_, t);
    if (!is_sound(step_terms_)) return {term_fault::policies};
    auto const fault = [&](auto const& x, std::size_t u, std::size_t g, term_fault::place what) {
      return fault_of(x, scheduled(groups[g].rule, policies_, t - 1, groups[g].number, rates), std::int64_t(u), what);
    };
    for (std::size_t u = 0; u < pending_.size(); ++u)
      if (!is_sound(pending_[u]))
        return fault(pending_[u], u, Plan::pending_per_tensor ? std::size_t(where_.tensors[u].group) : u,
                     term_fault::sums);
    if constexpr (has_memory<rule>) next_memories_ = memories_;
    [[maybe_unused]] double totals[Plan::sum_count + 1];
    if constexpr (Plan::sums && !Plan::sums_per_tensor)
      for (int c = 0; c < int(Plan::sum_count); ++c) totals[c] = total(Plan::norm_rows + c);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      auto const g = Plan::unit_per_tensor ? std::size_t(where_.tensors[u].group) : u;
      double factor = control_.factor;
      if constexpr (Plan::clip_over != scope::model) factor = factors_[Plan::clip_over == scope::tensor ? u : g];
      if constexpr (Plan::sums_per_tensor)
        for (int c = 0; c < int(Plan::sum_count); ++c) totals[c] = tensor_total(Plan::norm_rows + c, u);
      auto* const next = next_memories_.data();
      if constexpr (Plan::sums)
        units_[u] = terms_of<Plan>(groups[g], policies_, t, factor, totals, 1, next, std::int64_t(u), rates);
      else units_[u] = terms_of<Plan>(groups[g], policies_, t, factor, next, std::int64_t(u), rates);
      if (is_sound(units_[u])) continue;
      if (!is_idle<Plan>(has_elements(u), totals, 1)) return fault(units_[u], u, g, term_fault::term);
      units_[u] = {{}, 0, true};
      next[u] = memories_[u];
    }
    return {};
  }
  /// Whether anything follows the rule that has this unit.
  bool has_elements(std::size_t u) const {
    if constexpr (Plan::unit_per_tensor) return where_.tensors[u].count > 0 && !where_.tensors[u].matrix;
    else return where_.rule_chunks > 0;
  }
  /// The update takes place.
  void advance(std::vector<entry> const& groups) {
    detail::advance<Plan>(control_, groups[0].rule, policies_);
    exchange_memories();
  }

  /// The rules of the groups as they are after so many steps.
  void find_rules(std::vector<entry> const& groups, std::int64_t step) {
    scheduled_.clear();
    for (entry const& g : groups)
      scheduled_.push_back(scheduled(g.rule, policies_, step, g.number, rates_of(control_)));
  }

  /// With the matrix rules of the groups, if there are any.
  template <class... Rule>
  void check_schedules(std::vector<entry> const& groups, std::int64_t step, Rule const*... of_matrices) const {
    for (int g = 0; g < int(groups.size()); ++g) {
      check_scheduled(scheduled(groups[std::size_t(g)].rule, policies_, step, g), step, g);
      (check_scheduled(scheduled_for_matrices(of_matrices[g], policies_, step, g), step, g), ...);
    }
    check_terms<Plan>(where_, groups, policies_, step + 1, memories_, rates_of(control_));
  }

  std::int64_t first_bad_chunk() const {
    for (std::int64_t c = 0; c < where_.chunks(); ++c)
      if (!norm_totals_from<Plan>([&](int i) { return row(i)[c]; }).finite()) return c;
    return -1;
  }

  /// Takes over what is no element's.
  void take(host_control const& old, std::vector<row_move> const& moves) {
    control_ = old.control_;
    for (std::size_t u = 0; u < memories_.size(); ++u) {
      std::int64_t const from = !Plan::unit_per_tensor ? std::int64_t(u) : moves[u].old;
      if (from >= 0 && std::size_t(from) < old.memories_.size()) memories_[u] = old.memories_[std::size_t(from)];
    }
  }

  tensors where_;
  typename Plan::policies policies_;
  control_block control_;
  std::vector<double> partial_;
  std::vector<unit<rule, real>> units_, pending_;
  step_terms_of<Plan> step_terms_{}, pending_step_{};
  std::vector<memory_of<rule>> memories_, next_memories_;  // before the update, and behind it
  std::vector<rule> scheduled_;  // each group's, where elements need more of it than its terms
  std::vector<double> factors_;
  [[no_unique_address]] host_row_clip<Plan> row_clip_;
  control_block kept_;

 private:
  /// By elements: callers may have a view of memories_.
  void exchange_memories() {
    if constexpr (has_memory<rule>) std::swap_ranges(memories_.begin(), memories_.end(), next_memories_.begin());
  }
};

}  // namespace descent::detail
