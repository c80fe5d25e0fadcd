// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/host/engine.hpp>
#include <descent/detail/optimizer/arguments.hpp>
#include <descent/detail/optimizer/saved_run.hpp>
#include <descent/detail/step/explain.hpp>
#include <descent/detail/step/layout.hpp>
#include <descent/detail/step/report_of.hpp>
#include <descent/parameters.hpp>
#include <descent/policies/parallel.hpp>
#include <descent/report.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace descent {

namespace detail {
struct lr_sweeper;
}

/// Applies a rule, with its policies, to a list of parameters, one training step at a time.
///
/// Each step reads the gradients and updates values and the state it owns, in at most one read-only pass and one update
/// pass over memory (two read-only passes when a rule with sums meets a norm clip). It allocates nothing, copies
/// nothing and, on CUDA, waits for nothing: at most three launches on the backend's stream (five in that case) for
/// any number of tensors, and one more after group() or freeze() changed something. State is allocated and started in
/// the constructor, which waits for it. The caller's memory is used in place and must outlive the optimizer, which
/// can be moved and not copied.
///
/// The true gradient is the gradient in memory, divided by the loss scale and averaged over the accumulated
/// micro-batches. Norms, clipping and rules use it; the gradients in memory are not changed. With skip_nonfinite{}, or
/// a policy or rule that implies it, the whole step is skipped when any is not finite: values, masters, states,
/// averages, t and schedules stay; gradients are still set to zero where zero_grad{} asks; a dynamic loss scale backs
/// off. Without, nothing reads the gradients before the update, and NaN gets into the values; explain() and
/// report().checked say which it is.
template <class Value, class Gradient, class Rule, class... Ps>
class optimizer : detail::chosen<Value, Gradient, Rule, Ps...>::checked,
                  public detail::face<Value, Gradient, Rule, Ps...> {
  using chosen = detail::chosen<Value, Gradient, Rule, Ps...>;
  using plan = typename chosen::plan;
  using face = detail::face<Value, Gradient, Rule, Ps...>;
  using engine = typename face::engine;
  using typename face::entry;
  using typename face::tensors;
  using face::where_, face::groups_, face::engine_, face::swapped_, face::ascended_, face::unscaled_;
  using face::alive, face::waiting, face::refuse_averages, face::refuse_elsewhere;

 public:
  /// Throws std::invalid_argument on overlapping views, memory out of the backend's reach, values out of range and
  /// terms of the first update that are not finite in the type of the arithmetic, on the host also those of schedules;
  /// cuda_error when the device fails.
  optimizer(parameters<Value, Gradient> const& params, Rule rule, Ps... policies)
      : face(chosen::layout_of(params, policies...), rule), accepted_(groups_), policies_(chosen::set(policies...)),
        used_(detail::used_slots<plan>(groups_, policies_)) {
    if constexpr (has_check<Rule>) rule.check();
    chosen::check(policies_, where_.groups);
    // Of the host's engine all terms are checked behind it; on a device only these can be.
    if constexpr (!detail::checks_schedules<engine, entry> && !detail::follows_steps<typename plan::policies>)
      detail::check_terms<plan>(where_, groups_, policies_, 1);
    engine_ = std::make_unique<engine>(where_, groups_, policies_, used_, chosen::backend_in(policies_));
    this->check_schedules(0);
  }

  /// One training step on the gradients as they are now. weight is for accumulate, replicated and sharded, which
  /// document it. Throws, with nothing changed, std::invalid_argument when a group is out of range or needs a member of
  /// the state that no group needed at construction, std::logic_error when the order of calls around a shared scale or
  /// an average is wrong; on the host also what a schedule, clip policy or at() of the caller's throws. Values that
  /// ascend() or move_ahead() moved are back then. With ranks waits for all; comm_error where one is missing: values
  /// and t stay, and no step follows.
  void step(double weight = 1) {
    chosen::check_weight(weight);
    run({weight, false});
  }

  /// Updates with the micro-batches that wait, if any, as if there were n of them. Ranks meet in every flush(): one
  /// that has none adds nothing and keeps its gradients, also with zero_grad{}.
  void flush() requires(plan::template given<typename plan::accumulation>) {
    this->refuse_ready("flush()");
    run({0, true});
  }

  /// The rule of one group, to read and to change; a change holds from the next step() on. A field that follows a
  /// schedule is overwritten by it.
  Rule& group(int index) { return group_at(index).rule; }

  /// The rule of the matrices of one group, likewise.
  auto& matrix_rule(int index = 0) requires(detail::otherwise("give the policy matrices{rule}") || plan::has_matrices) {
    group_at(index);
    return alive().matrices().rule_at(std::size_t(index));
  }

  /// A frozen group is left alone: no work is done for it, its gradients count in no norm, its state stays. t is the
  /// optimizer's and goes on: moments that start at a later t are not corrected for their bias.
  void freeze(int index, bool frozen = true) {
    this->refuse_ready("freeze()");
    group_at(index).frozen = frozen;
  }

  /// Applies what group() and freeze() changed since the last step. Graphs captured before follow from their next
  /// replay on. Enqueued on CUDA, without waiting. Throws as step().
  void commit_groups() {
    alive();
    if (std::memcmp(groups_.data(), accepted_.data(), groups_.size() * sizeof(entry)) != 0) accept_groups();
    if constexpr (plan::has_matrices) alive().commit_matrices();
  }

  /// What the last step did. On CUDA waits for the stream, which must not be capturing.
  step_report report() const {
    engine const& e = waiting("report()");
    control_block const c = e.read_control();
    return detail::report_of<plan>(where_, policies_, c, plan::shares_scale ? e.read_scale() : c.scale);
  }

  /// The same without waiting: on CUDA the newest step that the device has finished, from pinned memory, so usually the
  /// one before the last. May be called at any time, also during a capture.
  step_report last_report() const {
    control_block const c = alive().late_control();
    return detail::report_of<plan>(where_, policies_, c, c.scale);
  }

  /// The tensors whose gradients were not finite in the last step that was measured (or gradient_norm()), and beside
  /// each the finite ones, in the order of the parameters; empty when all were finite. Costs nothing before it is
  /// called; on CUDA waits for the stream.
  std::vector<gradient_state> diagnose() const {
    return detail::diagnosis_of<plan>(where_, waiting("diagnose()").norm_partials());
  }

  /// The norm of the true gradients as they lie in memory now, before any clipping, in the norm of the clip policy or
  /// L2: of all that are not frozen; of one group or one tensor, frozen or not. A read-only pass of its own; on CUDA
  /// waits for the stream. With accumulate, the average over the micro-batches that step() has counted, or over one if
  /// it has none.
  double gradient_norm() { return measured_norm([](auto const&) { return true; }); }
  double gradient_norm(descent::group g) {
    group_at(g.index);
    return measured_norm([&](auto const& tensor) { return tensor.group == g.index; }, g.index);
  }
  double gradient_norm(std::string const& name) {
    auto const* t = &where_.tensors[this->number_of(name)];
    return measured_norm([&](auto const& tensor) { return &tensor == t; }, t->group);
  }

  /// Divides the gradients in memory by the loss scale, so that they can be inspected or changed; the next step() does
  /// not divide again. Call it once per step, after the last backward pass. Throws std::logic_error at the second call.
  /// A step, even a skipped one, ends it, and so do zero_grad(), load() and broadcast(); captured ones where they are
  /// replayed. A backward pass that writes the gradients anew does not: call zero_grad() first. Not for half, in which
  /// small gradients would be lost, nor with accumulate: see transform_gradients.
  void unscale() requires(detail::otherwise("needs a loss scale, not half, no accumulate; see transform_gradients") ||
                          plan::unscales) {
    if (unscaled_)
      throw std::logic_error("unscale() was called already for this step; the order is backward, unscale(), step()");
    if constexpr (plan::shares_scale)
      if (round_ == policies_.round->number)
        throw std::logic_error("unscale() after step(); the order is backward, unscale(), step(), update()");
    this->refuse_ready("unscale()");
    alive().unscale_gradients();
    alive().mark_unscaled(true);
    unscaled_ = true;
  }

  /// g <- f(g) for every gradient, free of the loss scale, which is multiplied back on in the same pass: in any type,
  /// as often as wanted. f takes and returns the type of the arithmetic, is called by several threads, and on CUDA must
  /// be callable in device code. On the host f may throw: then the gradients are what they were. For that they are
  /// copied first, unless f is noexcept.
  template <class F> void transform_gradients(F const& f) {
    this->refuse_ready("transform_gradients()");
    alive().transform_gradients(f);
  }

  /// The factor for the next loss; on CUDA waits for the stream.
  double loss_scale() const { return waiting("loss_scale()").read_scale().scale; }
  /// Pointer to the loss scale in the backend's memory; kernels, also captured ones, may read it.
  float const* loss_scale_pointer() const { return alive().loss_scale_pointer(); }

  /// Rebuilds the master copies from the values. Call it after something else wrote those.
  void reload_values() {
    engine& e = alive();
    refuse_averages("reload_values()");
    refuse_elsewhere("reload_values()");
    e.reload_values();
  }

  /// Sets all gradients to zero; on CUDA enqueued on the stream.
  void zero_grad() {
    this->refuse_ready("zero_grad()");
    alive().zero_gradients();
    this->end_unscaled();
  }

  /// Moves the values uphill, as the policy sam says; step() puts them back first. On CUDA enqueued.
  void ascend() requires(plan::ascends || detail::otherwise("ascend(): give the policy sam{}")) {
    engine& e = alive();
    refuse_averages("ascend()");
    if (ascended_) throw std::logic_error("ascend() twice; the order is backward, ascend(), backward, step()");
    commit_groups();
    e.ascend(groups_);
    ascended_ = true;
  }
  /// Moves the values to where the gradient is wanted, as the policy gradient_ahead says; step() puts them back first.
  /// On CUDA enqueued.
  void move_ahead() requires(plan::moves_ahead || detail::otherwise("move_ahead(): give the policy gradient_ahead{}")) {
    engine& e = alive();
    refuse_averages("move_ahead()");
    if (ascended_) throw std::logic_error("move_ahead() twice; the order is move_ahead(), backward, step()");
    commit_groups();
    e.template swap_in<detail::point::ahead>(groups_);
    ascended_ = true;
  }

  /// Puts the averages, rounded, into the values: those of the policy, or else those that the rule keeps (schedule-free
  /// rules, asgd). The next call puts back the values to the bit. Between the two step() throws. The first call
  /// allocates room for the values.
  void swap_average() requires(detail::otherwise("there is no average: give the policy ema{} or swa{}") ||
                               plan::averages) {
    refuse_elsewhere("swap_average()");
    if (swapped_) alive().restore_values();
    else commit_groups(), alive().template swap_in<detail::point::average>(groups_);
    swapped_ = !swapped_;
  }

  /// The optimizer for parameters that have gained and lost rows, as points and embeddings do: masters, states,
  /// averages and what rows count come along, each from the row that `rows` names; a parameter that is not named there
  /// keeps its rows, one of a new name starts anew. Groups, schedules, t and loss scale go on; a new group starts as
  /// group 0. The values and gradients are the caller's to move. All rows are selected then. This optimizer stays as it
  /// was; on CUDA waits for the stream. Throws std::invalid_argument on rows that do not exist, shapes that changed and
  /// as step().
  optimizer gathered(parameters<Value, Gradient> const& params, std::vector<row_source> const& rows = {}) const
      requires((detail::otherwise("rows that come and go on several ranks need an optimizer of their own") ||
                !plan::parallel) &&
               (detail::otherwise("what a matrix rule remembers belongs to whole matrices") || !plan::has_matrices)) {
    engine const& old = waiting("gathered()");
    if (swapped_) throw std::logic_error("gathered() between two calls of swap_average()");
    refuse_elsewhere("gathered()");
    if (old.read_control().unscaled)
      throw std::logic_error("gathered() between unscale() and step(): new gradients have their loss scale");
    check_groups();
    optimizer now(params, *this);
    now.engine_->take(old, detail::changes_of_rows<tensors>(where_, now.where_, rows), now.groups_);
    return now;
  }

  /// What the optimizer owns. descent::memory(params, rule, policies...) says the same beforehand.
  memory_report memory() const { return detail::owned<plan>(where_, used_, policies_); }
  static memory_report memory(parameters<Value, Gradient> const& params, Rule const& rule, Ps const&... policies) {
    auto const set = chosen::set(policies...);
    return detail::owned<plan>(chosen::layout_of(params, policies...), detail::used_slots<plan>({entry{rule}}, set), set);
  }

  /// Bytes that one step moves for each parameter that is not frozen; the mean, where there are several types.
  double bytes_per_parameter() const {
    return detail::mean_over_types<plan>(where_,
                                         [&]<class Typed>() { return detail::bytes_of_step<plan, Typed>(used_); });
  }

  /// Storage, passes, launches, bytes for each parameter, memory and groups, for people.
  std::string explain() const { return detail::explain<plan>(where_, used_, groups_, policies_, alive().name()); }

 private:
  friend struct detail::lr_sweeper;
  optimizer(parameters<Value, Gradient> const& params, optimizer const& old)
      : face(tensors(params), old.groups_[0].rule), accepted_(groups_), policies_(old.policies_), used_(old.used_),
        round_(old.round_) {
    std::copy_n(old.groups_.begin(), std::min(groups_.size(), old.groups_.size()), groups_.begin());
    accepted_ = groups_;
    chosen::check(policies_, where_.groups);
    engine_ = std::make_unique<engine>(where_, groups_, policies_, used_, chosen::backend_in(policies_));
  }

  void run(step_call const& call) {
    engine& e = alive();
    refuse_averages("step()");
    if constexpr (plan::shares_scale)
      if (round_ == policies_.round->number)
        throw std::logic_error(
            "step() twice without update() of the loss scale; the order is backward, step() of every "
            "optimizer once, then update()");
    commit_groups();
    if constexpr (plan::template given<typename plan::ascent>) {
      if (ascended_) e.restore_values();
      ascended_ = false;
    }
    e.step(groups_, call);
    unscaled_ = false;
    if constexpr (plan::shares_scale) {
      round_ = policies_.round->number;
      policies_.round->stepped = true;
    }
  }

  /// Of what is wanted, all of it in a group if one is named.
  template <class Wanted> double measured_norm(Wanted const& wanted, int group = -1) {
    engine& e = waiting("gradient_norm()");
    commit_groups();
    if (group >= 0 && groups_[std::size_t(group)].frozen) {  // thawed until the next commit
      accepted_[std::size_t(group)].frozen = false;
      e.set_groups(accepted_);
    }
    e.measure_norm(accepted_);
    commit_groups();
    control_block c = e.read_control();
    step_call const call{c.batches > 0 ? 0.0 : 1.0, false};
    double const inverse = e.inverse(c, call);
    return detail::norm_from<plan>(detail::totals_of<plan>(where_, e.norm_partials(), wanted)) * inverse;
  }

  entry& group_at(int index) {
    alive();
    detail::require_group(index, groups_.size());
    return groups_[std::size_t(index)];
  }

  /// Throws std::invalid_argument when a group's rule is not allowed.
  void check_groups() const {
    for (std::size_t g = 0; g < groups_.size(); ++g) try {
        if constexpr (has_check<Rule>) groups_[g].rule.check();
      } catch (std::invalid_argument const& e) {
        detail::refuse_group(g, e.what());
      }
    chosen::check_slots(groups_, policies_, used_);
  }

  void accept_groups() {
    check_groups();
    this->check_terms();
    if (alive().set_groups(groups_)) accepted_ = groups_;
  }

  detail::self_movable<std::vector<entry>> accepted_;
  typename plan::policies policies_;
  std::array<bool, plan::slots> used_;
  std::int64_t round_ = -1;  // of the shared loss scale, at the last step
};

template <class Value, class Gradient, class Rule, class... Ps>
optimizer(parameters<Value, Gradient> const&, Rule, Ps...) -> optimizer<Value, Gradient, Rule, Ps...>;

}  // namespace descent
