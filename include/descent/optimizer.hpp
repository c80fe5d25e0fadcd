// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/control.hpp>
#include <descent/detail/arguments.hpp>
#include <descent/detail/explain.hpp>
#include <descent/detail/layout.hpp>
#include <descent/host.hpp>
#include <descent/parallel.hpp>
#include <descent/parameters.hpp>
#include <descent/report.hpp>

#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace descent {

/// The machine: parameters, a rule and policies make a training step.
///
/// Each step reads the gradients and updates values and the state it owns, in at most one read-only pass and one update
/// pass over memory (two read-only passes when a rule with sums meets clip_norm). It allocates nothing, copies nothing
/// and, on CUDA, waits for nothing: at most three launches on the backend's stream (five in that case) for any number of
/// tensors, and one more after group() or freeze() changed something. State is allocated and started in the constructor,
/// which waits for it. The caller's memory is used in place and must outlive the optimizer, which can be moved and not
/// copied.
template <class Value, class Gradient, class Rule, class... Ps> class optimizer : detail::arguments<Rule, Ps...> {
  using plan = detail::plan<Value, Gradient, Rule, Ps...>;
  using backend = detail::policy_of<kind::backend, host<>, Ps...>;
  using engine = typename backend::template engine<plan>;
  using entry = group_entry<Rule>;

 public:
  /// Throws std::invalid_argument on overlapping views, memory out of the backend's reach and values out of range;
  /// cuda_error when the device fails.
  optimizer(parameters<Value, Gradient> const& params, Rule rule, Ps... policies)
      : where_(params), groups_(std::size_t(where_.groups), entry{rule}), accepted_(groups_),
        used_(used_slots(groups_, {policies...})), policies_{policies...} {
    if constexpr (has_check<Rule>) rule.check();
    (check(policies), ...);
    engine_ = std::make_unique<engine>(where_, groups_, policies_, used_, detail::policy_value<backend>(policies...));
  }

  /// One training step on the gradients as they are now. Throws std::invalid_argument, with nothing changed, when a
  /// group is out of range or needs a member of the state that no group needed at construction.
  void step() {
    engine& e = alive();
    if (std::memcmp(groups_.data(), accepted_.data(), groups_.size() * sizeof(entry)) != 0) accept_groups();
    e.step(groups_);
  }

  /// The rule of one group, to read and to change; a change holds from the next step() on. A field that follows a
  /// schedule is overwritten by it.
  Rule& group(int index) { return group_at(index).rule; }

  /// A frozen group is left alone: no work is done for it, its gradients count in no norm, its state stays.
  void freeze(int index, bool frozen = true) { group_at(index).frozen = frozen; }

  /// What the last step did. On CUDA waits for the stream, which must not be capturing.
  step_report report() const {
    control_block const c = alive().read_control();
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    step_report r{c.step, c.skipped, c.applied, {}, c.learning_rate, c.grad_norm, c.clip};
    if (!detail::has_lr<Rule>) r.learning_rate = none;
    if (!plan::measures) r.grad_norm = none;
    if (!c.applied && c.step + c.skipped == 0) r.why = "no step was taken yet";
    else if (!c.applied && c.bad_chunk < 0) r.why = "the norm of the gradients is not finite";
    else if (!c.applied)
      r.why = "the gradient of '" + where_.names[std::size_t(where_.tensor_of_chunk[std::size_t(c.bad_chunk)])] +
              "' is not finite";
    return r;
  }

  /// Sets all gradients to zero; on CUDA enqueued on the stream.
  void zero_grad() { alive().zero_gradients(); }

  /// A member of the state of one parameter, by its number, or by its name in the rule's `slots` where all members have
  /// one type. In the backend's memory: on CUDA wait for the stream before you read it. Empty when it is not stored.
  template <std::size_t Slot> std::span<typename plan::template slot<Slot> const> state(std::string const& name) const {
    static_assert(Slot < plan::slots, "the rule's state has fewer members");
    return view<typename plan::template slot<Slot>>(alive().slot(Slot), name);
  }
  auto state(std::string const& name, std::size_t slot) const {
    static_assert(plan::state_types::size == 1, "the state's members have several types: use state<number>(name)");
    if (slot >= plan::slots)
      throw std::invalid_argument("state of '" + name + "': the rule has " + std::to_string(plan::slots) +
                                  " members of state, asked for number " + std::to_string(slot));
    return view<typename plan::template slot<0>>(alive().slot(slot), name);
  }
  auto state(std::string const& name, std::string_view slot) const requires has_slot_names<Rule> {
    for (std::size_t i = 0; i < plan::slots; ++i)
      if (slot == Rule::slots[i]) return state(name, i);
    throw std::invalid_argument("state of '" + name + "': the rule has no member '" + std::string(slot) + "'");
  }

  /// The master copy of one parameter, likewise.
  std::span<typename plan::exact const> master(std::string const& name) const {
    static_assert(plan::has_master, "there is no master copy: give the policy master<float>{}");
    return view<typename plan::exact>(alive().master(), name);
  }

  /// What the optimizer owns. descent::memory(params, rule, policies...) says the same beforehand.
  memory_report memory() const { return detail::owned<plan>(where_, used_); }
  static memory_report memory(parameters<Value, Gradient> const& params, Rule const& rule, Ps const&... policies) {
    detail::layout<Value, Gradient> const where(params);
    return detail::owned<plan>(where, used_slots({entry{rule}}, {policies...}));
  }

  /// Bytes that one step moves for each parameter that is not frozen.
  std::int64_t bytes_per_parameter() const { return plan::pass_bytes(used_) + plan::update_bytes(used_); }

  /// Storage, passes, launches, bytes for each parameter, memory and groups, for people.
  std::string explain() const { return detail::explain<plan>(where_, used_, groups_, alive().name()); }

 private:
  engine& alive() const {
    if (!engine_) throw std::logic_error("this optimizer was moved from");
    return *engine_;
  }

  template <class P> static void check(P const& policy) {
    if constexpr (requires { policy.check(); }) policy.check();
  }

  entry& group_at(int index) {
    alive();
    if (index < 0 || std::size_t(index) >= groups_.size())
      throw std::invalid_argument("there is no group " + std::to_string(index) + ": groups are 0 to " +
                                  std::to_string(groups_.size() - 1));
    return groups_[std::size_t(index)];
  }

  /// What any group needs; a field that follows a schedule may take any value.
  static std::array<bool, plan::slots> used_slots(std::vector<entry> const& groups, typename plan::policies const& set) {
    std::array<bool, plan::slots> used;
    for (std::size_t i = 0; i < plan::slots; ++i) {
      used[i] = !has_optional_state<Rule>;
      if constexpr (has_optional_state<Rule>)
        for (entry const& g : groups) used[i] = used[i] || detail::unscheduled(g.rule, set).uses(i);
    }
    return used;
  }

  void accept_groups() {
    for (std::size_t g = 0; g < groups_.size(); ++g) try {
        if constexpr (has_check<Rule>) groups_[g].rule.check();
      } catch (std::invalid_argument const& e) {
        throw std::invalid_argument("group " + std::to_string(g) + ": " + e.what());
      }
    auto const needed = used_slots(groups_, policies_);
    for (std::size_t i = 0; i < plan::slots; ++i)
      if (needed[i] && !used_[i])
        throw std::invalid_argument("a group now needs the state '" + detail::slot_name<Rule>(i) +
                                    "', which none needed at construction, so it was not allocated");
    if (alive().set_groups(groups_)) accepted_ = groups_;
  }

  template <class T> std::span<T const> view(void* buffer, std::string const& name) const {
    auto const& x = where_.tensors[where_.find(name)];
    if (!buffer) return {};
    return {static_cast<T const*>(buffer) + x.arena, std::size_t(x.count)};
  }

  detail::layout<Value, Gradient> where_;
  std::vector<entry> groups_, accepted_;
  std::array<bool, plan::slots> used_;
  typename plan::policies policies_;
  std::unique_ptr<engine> engine_;
};

template <class Value, class Gradient, class Rule, class... Ps>
optimizer(parameters<Value, Gradient> const&, Rule, Ps...) -> optimizer<Value, Gradient, Rule, Ps...>;

/// The memory that optimizer{params, rule, policies...} would own; nothing is allocated.
template <class Value, class Gradient, class Rule, class... Ps>
memory_report memory(parameters<Value, Gradient> const& params, Rule const& rule, Ps const&... policies) {
  return optimizer<Value, Gradient, Rule, Ps...>::memory(params, rule, policies...);
}

}  // namespace descent
