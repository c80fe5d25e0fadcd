// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/engine.hpp>
#include <descent/optimizer/checkpoint.hpp>
#include <descent/optimizer/detail/optimizer_traits.hpp>
#include <descent/engine/step/explain.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/parameters.hpp>
#include <descent/report.hpp>

#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace descent {

/// Applies a rule, with its policies, to a list of parameters, one training step at a time.
///
/// Each step reads the gradients and updates the values and its own state, in at most one read-only pass and one update
/// pass over memory (two read-only passes for a rule with sums under a norm clip). It allocates and copies nothing. On
/// CUDA it does not wait: it enqueues at most three kernel launches on the backend's stream (five in that case) for any
/// number of tensors, and one more after a change by group() or freeze(). The constructor waits until the state is
/// initialized. The caller's memory is used in place and must outlive the optimizer, which can be moved but not copied.
///
/// The true gradient is the gradient in memory, divided by the loss scale and averaged over the accumulated
/// micro-batches. Norms, clipping and rules use it; the gradients in memory are not changed. With skip_nonfinite{}, or
/// a policy or rule that implies it, the whole step is skipped if any gradient is not finite: values, masters, states,
/// averages, t and schedules do not change, zero_grad{} still sets the gradients to zero, and a dynamic loss scale
/// backs off. Otherwise nothing checks the gradients before the update, and a NaN reaches the values. explain() and
/// report().checked say which case applies.
template <class Value, class Gradient, class Rule, class... Ps>
class optimizer : detail::optimizer_traits<Value, Gradient, Rule, Ps...>::checked,
                  public detail::optimizer_base<Value, Gradient, Rule, Ps...> {
  using optimizer_traits = detail::optimizer_traits<Value, Gradient, Rule, Ps...>;
  using plan = typename optimizer_traits::plan;
  using optimizer_base = detail::optimizer_base<Value, Gradient, Rule, Ps...>;
  using engine = typename optimizer_traits::backend::template engine<plan>;
  using entry = group_entry<Rule>;
  using tensors = detail::layout<Value, typename plan::gradient>;
  using optimizer_base::core_;
  static constexpr bool has_streams = !std::is_same_v<typename optimizer_traits::stream, detail::no_stream>;

 public:
  /// Throws std::invalid_argument if views overlap, memory is out of the backend's reach, a setting is out of range, or
  /// a term of the first update is not finite (on the host also with schedules), and cuda_error if the device fails.
  optimizer(parameters<Value, Gradient> const& params, Rule rule, Ps... policies)
      : optimizer_base(optimizer_traits::layout_of(params, policies...), rule), accepted_(core_.groups),
        policies_(optimizer_traits::set(policies...)), used_(detail::used_slots<plan>(core_.groups, policies_)) {
    descent::check_rule<typename plan::real>(rule);
    optimizer_traits::check(policies_, core_.where.groups);
    if constexpr (plan::leads) detail::find_largest_rate<plan>(policies_, rule);
    // On the host, check_schedules() below checks all terms. On a device, only terms without schedules can be checked.
    if constexpr (!detail::checks_schedules<engine, entry> && !detail::follows_steps<typename plan::policies>)
      detail::check_terms<plan>(core_.where, core_.groups, policies_, 1);
    core_.engine = detail::sole_pointer<engine>(
        new engine(core_.where, core_.groups, policies_, used_, optimizer_traits::backend_in(policies_)));
    core_.engine->await_start();
    core_.check_schedules(0);
  }

  /// Takes one training step on the current gradients. accumulate, replicated and sharded document what weight means.
  /// Throws std::invalid_argument if a group is out of range or needs a member of the state that no group needed at
  /// construction, std::logic_error if calls around a shared scale or an average come in the wrong order, and on the
  /// host whatever a user's schedule, clip policy or at() throws. Nothing has changed then; values moved by
  /// ascend() or move_ahead() are back unless commit_groups() threw. With ranks, waits for all of them; if one is
  /// missing, throws comm_error, leaves values and t as they were, and allows no further step.
  void step(double weight = 1) {
    optimizer_traits::check_weight(weight);
    run({weight, false});
  }
  void step(std::integral auto weight) { step(double(weight)); }  // 0 is no stream

  /// The same on another stream of the device. Events order the step after the optimizer's work so far, and the
  /// optimizer's later work after the step. Where only that stream is capturing, no order is added: the caller orders
  /// the graph's launches and other calls.
  void step(typename optimizer_traits::stream stream, double weight = 1)
      requires(detail::otherwise("step(stream): the host has no streams") || has_streams) {
    optimizer_traits::check_weight(weight);
    core_.alive().on_stream(stream, [&] { run({weight, false}); });
  }

  /// Updates with the micro-batches accumulated so far, if any, as if there were n of them. Every rank must call
  /// flush(): a rank without micro-batches adds nothing and keeps its gradients, even with zero_grad{}.
  void flush() requires(detail::has<plan, kind::accumulation>) {
    core_.refuse_ready("flush()");
    run({0, true});
  }

  /// The rule of one group, to read or change. A change takes effect at the next step(). A schedule overwrites the
  /// field that it controls.
  Rule& group(int index) { return group_at(index).rule; }

  /// The matrix rule of one group. Changes take effect as with group().
  auto& matrix_rule(int index = 0) requires(detail::otherwise("give the policy matrices{rule}") || plan::has_matrices) {
    group_at(index);
    return core_.alive().matrices.common.rules[std::size_t(index)];
  }

  /// Freezes a group: no work is done for it, its gradients count in no norm, and its state does not change. t belongs
  /// to the optimizer and still advances, so moments that start at a later t are not bias-corrected.
  void freeze(int index, bool frozen = true) {
    core_.refuse_ready("freeze()");
    group_at(index).frozen = frozen;
  }

  /// Applies the changes made through group() and freeze() since the last step. Graphs captured earlier use them from
  /// their next replay on. Enqueued on CUDA, without waiting. Throws like step().
  void commit_groups() {
    core_.alive();
    if (std::memcmp(core_.groups.data(), accepted_.data(), core_.groups.size() * sizeof(entry)) != 0) accept_groups();
    if constexpr (plan::has_matrices) core_.alive().commit_matrices(core_.groups);
  }

  /// What the last step did. On CUDA waits for the stream, which must not be capturing.
  step_report report() const {
    engine const& e = core_.waiting("report()");
    control_block const c = e.read_control();
    return core_.report(policies_, c, plan::shares_scale ? e.read_scale() : c.scale);
  }

  /// Like report(), but does not wait. On CUDA it reads the newest step that the device has finished from pinned
  /// memory: usually the one before the last. May be called at any time, even during a capture.
  step_report last_report() const {
    control_block const c = core_.alive().late_control();
    return core_.report(policies_, c, c.scale);
  }

  /// All tensors in the order of the parameters, each with its norm and whether its gradients were finite in the last
  /// step that measured them (or gradient_norm()). Empty if all were finite. Costs nothing until it is called; on CUDA
  /// waits for the stream.
  std::vector<gradient_state> diagnose() const {
    return detail::diagnosis_of<plan>(core_.whole(), core_.waiting("diagnose()").norm_partials());
  }

  /// The norm of the true gradients now in memory, before clipping: the clip policy's norm, or L2. It covers all groups
  /// that are not frozen, or one group or one tensor, frozen or not. Takes a read-only pass of its own; on CUDA waits
  /// for the stream. With accumulate, averages over the micro-batches that step() has counted, or over one if it has
  /// counted none.
  double gradient_norm() { return measured_norm([](auto const&) { return true; }); }
  double gradient_norm(descent::group g) {
    group_at(g.index);
    return measured_norm([&](auto const& tensor) { return tensor.group == g.index; }, g.index);
  }
  double gradient_norm(std::string const& name) {
    auto const* t = &core_.whole().tensors[core_.whole().find(name)];
    return measured_norm([&](auto const& tensor) { return &tensor == t; }, t->group);
  }

  /// Divides the gradients in memory by the loss scale, so that they can be inspected or changed; the next step() does
  /// not divide again. Call it once per step, after the last backward pass: a second call throws std::logic_error. A
  /// step (even a skipped one), zero_grad(), load() and broadcast() end it; captured calls do so when replayed. A
  /// backward pass that overwrites the gradients does not end it, so call zero_grad() first. Not available for half, in
  /// which small gradients would be lost, or with accumulate: use transform_gradients().
  void unscale() requires(detail::otherwise("needs a loss scale, not half, no accumulate; see transform_gradients") ||
                          plan::unscales) {
    if (core_.unscaled)
      throw std::logic_error("unscale() was already called for this step; the order is backward, unscale(), step()");
    if constexpr (plan::shares_scale)
      if (round_ == policies_.round->number)
        throw std::logic_error("unscale() after step(); the order is backward, unscale(), step(), update()");
    core_.refuse_writes("unscale()");
    core_.alive().unscale_gradients();
    core_.alive().mark_unscaled(true);
    core_.unscaled = true;
  }

  /// Sets g <- f(g) for every gradient g without its loss scale; the same pass multiplies the scale back. Works for any
  /// type, any number of times. f takes and returns the type of the arithmetic and is called by several threads; on
  /// CUDA it must be callable in device code. On the host f may throw: the gradients are then restored from a copy,
  /// which is made unless f is noexcept.
  template <class F> void transform_gradients(F const& f) {
    core_.refuse_writes("transform_gradients()");
    core_.alive().transform_gradients(f);
  }

  /// Sets all gradients to zero; on CUDA enqueued. Micro-batches that wait still count, with weight 0 and no rows.
  void zero_grad() {
    core_.refuse_writes("zero_grad()");
    core_.alive().zero_gradients();
    core_.end_unscaled();
  }

  /// Moves the values uphill, as described at sam; the next step() puts them back first. On CUDA enqueued.
  void ascend() requires(plan::is_sam || detail::otherwise("ascend(): give the policy sam{}")) {
    perturb("ascend()", "backward, ascend(), backward, step()", [&](engine& e) { e.ascend(core_.groups); });
  }
  /// Moves the values to the point where the gradient is taken, as described at gradient_ahead; the next step() puts
  /// them back first. On CUDA enqueued.
  void move_ahead() requires(plan::moves_ahead || detail::otherwise("move_ahead(): give the policy gradient_ahead{}")) {
    perturb("move_ahead()", "move_ahead(), backward, step()",
            [&](engine& e) { e.template swap_in<detail::swap_target::ahead>(core_.groups); });
  }

  /// Replaces the values by their averages, rounded: those of the policy, or else those that the rule keeps
  /// (schedule-free rules, asgd). The next call restores the values bit for bit. Between the two calls step() throws.
  /// The first call allocates memory for the saved values, so it cannot be captured.
  void swap_average()
      requires(detail::otherwise("there is no average: give the policy ema{} or swa{}") || plan::averages) {
    core_.refuse_elsewhere("swap_average()");
    if (core_.swapped) core_.alive().restore_values();
    else commit_groups(), core_.alive().template swap_in<detail::swap_target::average>(core_.groups);
    core_.swapped = !core_.swapped;
  }

  /// Makes an optimizer for parameters that have gained or lost rows, such as points and embeddings. Each row's
  /// masters, states, averages and row counts come from the old row that `rows` names. A parameter not listed in `rows`
  /// keeps its rows; a parameter with a new name starts with a new state. Groups, schedules, t and the loss scale carry
  /// over; a new group starts as group 0. The caller moves the values and gradients. All rows are then selected. On
  /// CUDA waits for the stream. Throws like step(), and std::invalid_argument if a row is missing or its shape changed.
  optimizer gathered(parameters<Value, Gradient> const& params, std::vector<row_source> const& rows = {}) const
      requires((detail::otherwise("gathered() does not support several ranks") || !(plan::parallel || plan::splits)) &&
               (detail::otherwise("gathered() does not support state_in: state moves") || !plan::has_given) &&
               (detail::otherwise("gathered() does not support matrix rules") || !plan::has_matrices)) {
    engine const& old = core_.waiting("gathered()");
    if (core_.swapped) throw std::logic_error("gathered() between two calls of swap_average()");
    core_.refuse_elsewhere("gathered()");
    check_groups();
    tensors const where = optimizer_traits::layout_of(params);
    auto const changes = detail::changes_of_rows<tensors>(core_.where, where, rows);
    control_block const control = old.read_for(changes);
    if (control.unscaled)
      throw std::logic_error("gathered() between unscale() and step(): new gradients have their loss scale");
    optimizer now(where, *this);
    now.core_.engine->take(old, control, changes, now.core_.groups);
    return now;
  }

  /// The memory that the optimizer owns. descent::memory(params, rule, policies...) computes it without an optimizer.
  memory_report memory() const { return detail::owned<plan>(core_.where, used_, policies_); }
  static memory_report memory(parameters<Value, Gradient> const& params, Rule const& rule, Ps const&... policies) {
    auto const set = optimizer_traits::set(policies...);
    auto const used = detail::used_slots<plan>(detail::plain_vector<entry>(1, {rule}), set);
    return detail::owned<plan>(optimizer_traits::layout_of(params, policies...), used, set);
  }

  /// Bytes that one step moves per parameter that is not frozen; the mean over all types, if there are several.
  double bytes_per_parameter() const {
    return detail::mean_over_types<plan>(core_.where,
                                         [&]<class Typed>() { return detail::bytes_of_step<plan, Typed>(used_); });
  }

  /// What was set and what a step costs: the rule of group 0, what differs in the other groups, policies, schedules
  /// with values, storage, memory, passes. Does not wait: on CUDA "now" is after the step of last_report().
  std::string explain() const {
    engine const& e = core_.alive();
    return detail::explain<plan, has_streams>(core_.where, used_, core_.groups, policies_, e.matrices,
                                              {e.name(), e.late_control()});
  }

 private:
  friend struct detail::lr_sweeper;
  friend struct detail::run_access;
  friend struct detail::outer_access;
  optimizer(tensors const& where, optimizer const& old)
      : optimizer_base(where, old.core_.groups[0].rule), accepted_(core_.groups), policies_(old.policies_),
        used_(old.used_), round_(old.round_) {
    auto const& groups = old.core_.groups;
    for (std::size_t g = 0; g < core_.groups.size() && g < groups.size(); ++g) core_.groups[g] = groups[g];
    accepted_ = core_.groups;
    optimizer_traits::check(policies_, core_.where.groups);
    core_.engine = detail::sole_pointer<engine>(
        new engine(core_.where, core_.groups, policies_, used_, optimizer_traits::backend_in(policies_)));
  }

  template <class F> void perturb(char const* function, char const* order, F const& move) {
    engine& e = core_.alive();
    core_.refuse_averages(function);
    if (core_.ascended) throw std::logic_error(std::string(function) + " twice; the order is " + order);
    commit_groups();
    move(e);
    core_.ascended = true;
  }

  void run(step_call const& call) {
    engine& e = core_.alive();
    core_.refuse_averages(call.flush ? "flush()" : "step()");
    if constexpr (plan::shares_scale)
      if (round_ == policies_.round->number)
        throw std::logic_error("step() twice without update() of the loss scale; the order is backward, step() of each "
                               "optimizer, update()");
    commit_groups();
    if constexpr (detail::has<plan, kind::perturbation>) {
      if (core_.ascended) e.restore_values();
      core_.ascended = false;
    }
    e.step(core_.groups, call);
    core_.unscaled = false;
    if constexpr (plan::shares_scale) {
      round_ = policies_.round->number;
      policies_.round->stepped = true;
    }
  }

  /// The norm over the tensors that `wanted` accepts. If they all belong to one group, `group` is its index.
  template <class Wanted> double measured_norm(Wanted const& wanted, int group = -1) {
    engine& e = core_.waiting("gradient_norm()");
    commit_groups();
    if (group >= 0 && core_.groups[std::size_t(group)].frozen) {  // thawed until the next commit
      accepted_[std::size_t(group)].frozen = false;
      e.set_groups(accepted_);
    }
    e.measure_norm(accepted_);
    commit_groups();
    control_block c = e.read_control();
    step_call const call{c.batches > 0 ? 0.0 : 1.0, false};
    double const inverse = e.inverse(c, call);
    return detail::norm_from<plan>(detail::totals_of<plan>(core_.whole(), e.norm_partials(), wanted)) * inverse;
  }

  entry& group_at(int index) {
    core_.alive();
    detail::require_group(index, core_.groups.size());
    return core_.groups[std::size_t(index)];
  }

  /// Throws std::invalid_argument if a group's rule is not allowed.
  void check_groups() const {
    for (std::size_t g = 0; g < core_.groups.size(); ++g) try {
        descent::check_rule<typename plan::real>(core_.groups[g].rule);
      } catch (std::invalid_argument const& e) {
        detail::refuse_group(g, e.what());
      }
    optimizer_traits::check_slots(core_.groups, policies_, used_);
  }

  void accept_groups() {
    check_groups();
    core_.check_terms();
    if (core_.alive().set_groups(core_.groups)) accepted_ = core_.groups;
  }

  detail::self_movable<detail::plain_vector<entry>> accepted_;
  typename plan::policies policies_;
  std::array<bool, plan::slots> used_;
  std::int64_t round_ = -1;  // the round of the shared loss scale at the last step
};

template <class Value, class Gradient, class Rule, class... Ps>
optimizer(parameters<Value, Gradient> const&, Rule, Ps...) -> optimizer<Value, Gradient, Rule, Ps...>;
/// For one message if the first argument is no list of parameters.
template <class First, class... Rest> requires(!detail::begins_optimizer<First>)
optimizer(First const&, Rest const&...) -> optimizer<typename detail::not_parameters<First>::value, float, Rest...>;

}  // namespace descent
