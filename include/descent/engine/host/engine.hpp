// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>
#include <descent/engine/host/gradients.hpp>
#include <descent/engine/host/memory_check.hpp>
#include <descent/engine/host/passes.hpp>
#include <descent/engine/host/scaler.hpp>
#include <descent/engine/step/no_matrices.hpp>
#include <descent/engine/step/control_block.hpp>
#include <descent/engine/step/profiler.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace descent::detail {

/// The engine of the backend host. A pass is one loop of System's threads over the chunks of all tensors. It uses AVX2
/// if the processor has it, whatever the compiler flags. step() returns when the step is done.
template <class Plan, class System> class host_engine {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

 public:
  host_control<Plan> control;
  [[no_unique_address]] host_ranks<Plan> ranks;
  [[no_unique_address]] host_rows<Plan> rows;
  host_storage<Plan, System> storage{control, ranks, rows};
  host_gradients<Plan, System> gradients{control, storage, ranks};
  host_passes<Plan, System> passes{control, storage};
  matrices_of<Plan, host_matrices<Plan, System>> matrices;

  host_engine(tensors const& where, plain_vector<entry> const& groups, typename Plan::policies const& policies,
              std::array<bool, Plan::slots> const& used, host<System> const&)
      : control(where, groups, policies), ranks(control.policies), rows(where) {
    require_host_tensors(where);
    each_policy_input<Plan>(policies, [](outside_memory const& m) { require_host_memory(m); });
    ranks.join(control.where, groups, control.policies);
    storage.allocate(used);
    if (!storage.is_initialized()) passes.start(groups);
    matrices.start(*this);
    show_matrix_rules();
    ranks.start();
    control.model.start();
  }
  void await_start() const {}

  void step(plain_vector<entry> const& groups, step_call const& call) {
    [[maybe_unused]] auto const whole = begin_range<Plan>("step");
    control.keep();
    try {
      if constexpr (Plan::splits && Plan::measures) control.model.together([&] { change(groups, call); });
      else change(groups, call);
    } catch (...) {
      control.put_back(groups);
      throw;
    }
    if constexpr (Plan::keeps_selection) passes.keep_selection(control.block.batches > 0);
  }
  void commit_matrices(plain_vector<entry> const&) {
    if (matrices.commit()) show_matrix_rules();
  }

  void measure_norm(plain_vector<entry> const& groups, char const* name = "gradient_norm()") {
    step_call const call{control.block.batches > 0 ? 0.0 : 1.0, false};
    if constexpr (Plan::parallel) gradients.meet_to_measure(groups, call, name);
    control.make_norm_partials();
    control.model.together([&] { gradients.template measure_all<measure::norm>(groups, 1, call, name); });
  }
  /// The partial sums of the norm as the last read-only pass left them.
  std::vector<double> norm_partials() const {
    return {control.partial.begin(), control.partial.end() - control.model.extra};
  }
  std::span<memory_of<rule>> memories() { return {control.memories.data(), control.memories.size()}; }

  /// Marks the gradient of a tensor as ready to be sent.
  void ready(plain_vector<entry> const& groups, std::size_t tensor) { gradients.ready(groups, tensor); }
  /// Whether any gradient is marked in a micro-batch that sends gradients.
  bool any_ready() const { return gradients.any_ready(); }

  /// Micro-batches that wait still count, with weight 0.
  void zero_gradients() {
    passes.each_own(zero_all{});
    control.block.weight = 0;
    if constexpr (Plan::keeps_selection) passes.keep_selection(false);
  }
  void unscale_gradients() { passes.each_own(multiply_all<real>{real(1 / double(control.scale().scale))}); }
  void mark_unscaled(bool is) { control.block.unscaled = is; }
  template <class F> void transform_gradients(F const& f) {
    real const s = control.block.unscaled ? real(1) : real(control.scale().scale);
    transform_all<F, real> const body{f, s, 1 / s};
    if constexpr (std::is_nothrow_invocable_v<F const&, real>) passes.each_own_scalar(body);
    else gradients.change_gradients([&] { passes.each_own_scalar(body); });
  }
  void reload_values() { passes.each(reload_all{}); }
  bool values_changed() {
    std::int32_t found = 0;
    passes.each(compare_all{&found});
    return found != 0;
  }
  template <class Body> void in_tensor(tensors const& where, std::size_t tensor, Body const& body) {
    auto const& x = where.tensors[tensor];
    passes.each_in({x.first_chunk, chunks_of(x.count), 0, 0}, body);
  }
  /// Calls f for all blocks first, so that nothing has changed if it throws.
  template <class F>
  void scale_rows(tensors const& where, std::size_t tensor, F const& f, std::span<float const> s, std::int64_t block) {
    std::vector<double> factors;
    for (float one : s) factors.push_back(f(double(one)));
    in_tensor(where, tensor, scale_rows_all<listed_factor>{{factors.data()}, block});
  }
  void ascend(plain_vector<entry> const& groups) {
    measure_norm(groups, "ascend()");
    norm_totals const totals = control.decider(groups).totals();
    passes.ascend(groups, real(perturbation_factor<Plan>(control.policies, totals)));
  }
  template <swap_target To> void swap_in(plain_vector<entry> const& groups) {
    storage.make_saved();
    control.decider(groups).find_rules(control.block.step);
    share_values([&] { passes.template swap_in<To>(groups); });
  }
  void restore_values() {
    share_values([&] { passes.each(restore_all{storage.saved()}); });
  }

  void select_rows(std::size_t tensor, std::int64_t count, auto... selection) {
    rows.select(tensor, count, selection...);
  }
  std::int32_t const* row_updates(std::size_t tensor) const { return rows[tensor].updates; }

  void rebind(tensors const& where, std::vector<tensor_addresses> const& addresses) {
    storage.require_addresses(where, addresses);
    control.where.rebind(addresses);
  }

  control_block read_for(row_changes<tensors> const& changes) const {
    require_sources(changes);
    return control.block;
  }
  /// Copies from `old` the state of the rows that stay and the state that belongs to no element.
  void take(host_engine const& old, control_block const&, row_changes<tensors> const& changes,
            plain_vector<entry> const&) {
    storage.take(old.storage, changes.moves);
    control.take(old.control, changes.moves);
  }

  /// Throws std::invalid_argument on all ranks if they have diverged.
  void agree(tensors const&, plain_vector<entry> const& groups) {
    ranks.agree(control.where, groups, control.block, control.scale(), memories(), storage.prints(),
                matrices.facts(control.where.names));
  }

  /// Replaces the values, the groups and all owned state of every rank by those of rank `root`.
  void broadcast(plain_vector<entry>& groups, int root) {
    if (control.block.batches != 0) throw std::logic_error("broadcast(): micro-batches wait for their step");
    for (auto const& x : control.where.tensors) ranks.broadcast(x.value, x.count * x.value_size(), root);
    storage.each_owned([&](owned_buffer const& b, std::int64_t count) {
      if (b.at) ranks.broadcast(b.at, count * b.size, root);
    });
    ranks.broadcast(control.memories.data(), std::int64_t(control.memories.size() * sizeof control.memories[0]), root);
    ranks.broadcast(&control.block, sizeof control.block, root);
    ranks.broadcast(groups.data(), std::int64_t(groups.size() * sizeof(entry)), root);
    matrices.broadcast([&](void* data, std::int64_t bytes) { ranks.broadcast(data, bytes, root); });
    show_matrix_rules();
  }

  template <class T> void set_control(T control_block::* field, T x, plain_vector<entry> const&) {
    control.block.*field = x;
  }
  void observe(float const* x, double y, auto const&) { observe_metric<Plan>(control.block, control.policies, x, y); }
  bool set_groups([[maybe_unused]] plain_vector<entry> const& groups) {
    if constexpr (Plan::parallel) ranks.set_groups(groups, control.policies);
    if constexpr (Plan::splits) control.model.set_groups(groups, control.policies);
    return true;
  }
  void check_schedules(plain_vector<entry> const& groups, std::int64_t step) {
    if constexpr (Plan::has_matrices) {
      control.check_schedules(groups, step, matrices.common.rules.data());
      auto const terms = matrices.terms_in(*this, groups);
      if (term_fault const fault = fault_of_matrices<Plan>(terms, step + 1, rates_of(control.block)); fault.what)
        refuse_terms<Plan>(control.model.whole(), fault, step + 1);
    } else {
      control.check_schedules(groups, step);
    }
  }
  void check_next_terms(plain_vector<entry> const& groups) const {
    check_terms<Plan>(control.model.whole(), groups, control.policies, control.block.step + 1, control.memories,
                      rates_of(control.block));
  }
  void refuse_capture(char const*) const {}
  /// The factor that turns gradients in memory into true gradients.
  double inverse(control_block const& c, step_call const& call) const {
    return gradient_factor<Plan>(c, control.policies, control.scale(), call);
  }
  typename Plan::policies const& policies() const { return control.policies; }
  static bool on_host(void const*) { return true; }
  control_block read_control() const { return control.block; }
  control_block late_control() const {
    control_block c = control.block;
    c.scale = control.scale();
    return c;
  }
  float const* loss_scale_pointer() const { return &control.scale().scale; }
  loss_scale_state read_scale() const { return control.scale(); }
  std::string name() const { return host<System>::name(); }
  tensors const& whole() const { return control.model.whole(); }

 private:
  /// Gives the matrix rules to what ranks compare.
  void show_matrix_rules() {
    if constexpr (Plan::has_matrices && Plan::parallel) ranks.set_matrix_rules(matrices.hash(), matrices.facts());
    if constexpr (Plan::has_matrices && Plan::splits) control.model.set_matrix_rules(matrices.hash(), matrices.facts());
  }

  /// Runs the step. It may throw before it changes elements, and in gather(), which restores the values.
  void change(plain_vector<entry> const& groups, step_call const& call) {
    bool const complete = completes<Plan>(control.block, control.policies, call);
    if constexpr (Plan::sums) control.decider(groups).prepare();
    if constexpr ((Plan::parallel || Plan::splits) && !Plan::sums)
      if (complete) control.rehearse(groups);
    if constexpr (Plan::parallel) {
      if constexpr (Plan::parallel_policy::agrees)
        if (complete && ++updates_ % team().updates_between == 0) agree(control.where, groups);
      gradients.meet(groups, call);
    }
    auto const find_all = [&] { decide(groups, call, complete); };
    if (complete) ranks.together(find_all);
    else find_all();
    if constexpr (Plan::has_matrices) matrices.common.count(control.policies, call);
    if (!control.block.applied) {
      if constexpr (Plan::zeroes)
        if (!control.block.waiting) passes.zero(groups);
      return;
    }
    if constexpr (Plan::per_row_step) passes.count_updates_of_rows();
    share_values([&] {
      [[maybe_unused]] auto const range = begin_range<Plan>("update");
      passes.update();
      matrices.step(*this, groups);
    });
  }

  /// Decides whether the step goes on, and finds its factors and terms. Measures what they need.
  void decide(plain_vector<entry> const& groups, step_call const& call, [[maybe_unused]] bool complete) {
    [[maybe_unused]] char const* const name = call.flush ? "flush()" : "step()";
    if constexpr (Plan::measures) {
      if (complete) {
        if constexpr (Plan::norm_first || !Plan::sums)
          gradients.template measure_all<measure::norm>(groups, 1, call, name);
        else gradients.template measure_all<measure::norm_and_sums>(groups, inverse(control.block, call), call, name);
      }
    }
    auto const decider = control.decider(groups);
    if (!decider.decide(call)) return;
    if constexpr (Plan::norm_first)
      gradients.template measure_all<measure::sums>(groups, control.block.factor, call, name);
    decider.find_terms(matrices.terms_in(*this, groups));
  }

  /// Calls change() and, if each rank changes only its shard of the values, exchanges the shards: all of it or nothing.
  template <class F> void share_values(F const& change) {
    if constexpr (Plan::shards) ranks.keep(control.where);
    change();
    if constexpr (Plan::shards) ranks.gather(control.where);
  }

  auto const& team() const { return get<kind::parallel>(control.policies); }

  std::int64_t updates_ = 0;  // counted for agree_every
};

}  // namespace descent::detail
