// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/any_elements.hpp>
#include <descent/optimizer/detail/erased.hpp>
#include <descent/optimizer/detail/optimizer_part.hpp>
#include <descent/parameters.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/report.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// An optimizer whose rule, types and policies are known only at run time.
namespace descent {

/// Holds an optimizer of any type and has its functions, as far as they do not depend on types. Each does what it does
/// in the optimizer, with the same arguments, order on the stream, and exceptions. A function that needs a policy which
/// the optimizer does not have throws std::logic_error. step() costs one virtual call more.
///
///     any_optimizer opt{optimizer{params, adamw{}, master<float>{}}};
///     opt.set(0, "lr", 1e-3);
///     opt.step();
///
/// Includes no rule, policy or backend: a program may use any_optimizer in many units, and make it in one. To choose
/// policies at run time, see choose(). Everything of the held optimizer is compiled, which takes about twice as long as
/// its step() alone. target<O>() gives what is missing here: gathered(), transform_gradients(), typed views.
class any_optimizer {
 public:
  /// Empty: every function throws std::logic_error. Also the state of one that was moved from.
  any_optimizer() = default;
  template <class Optimizer>
  requires(!std::is_same_v<std::remove_cvref_t<Optimizer>, any_optimizer> && !std::is_lvalue_reference_v<Optimizer> &&
           requires(Optimizer& of) { of.step(), of.report(); })
  any_optimizer(Optimizer&& of) : of_(std::make_unique<detail::erased<Optimizer>>(std::move(of))) {}

  /// Whether there is an optimizer.
  explicit operator bool() const { return bool(of_); }
  /// The optimizer, or null if it has another type. Optimizer must have been made by the same compiler. Types are
  /// compared by the address of a symbol, so the result is also null if the optimizer was made in a library that hides
  /// its symbols or was opened with RTLD_LOCAL: use the type inside that library.
  template <class Optimizer> Optimizer* target() const {
    return of_ && of_->tag() == &detail::tag_of<Optimizer> ? &static_cast<detail::erased<Optimizer>&>(*of_).of
                                                           : nullptr;
  }

  /// As in the optimizer.
  void step(double weight = 1) { alive().step(weight); }
  template <class T> void step(T* stream, double weight = 1) { alive().step_on({stream, &detail::tag_of<T>}, weight); }
  void flush() { alive().flush(); }
  void zero_grad() { alive().zero_grad(); }
  void ascend() { alive().ascend(); }
  void move_ahead() { alive().move_ahead(); }
  void ready(std::size_t parameter) { alive().ready(parameter); }
  void select_rows(std::string const& name, std::uint8_t const* mask) { alive().select_rows(name, mask); }
  void observe(double metric) { alive().observe(metric); }
  void observe(float const* metric) { alive().observe(metric); }

  /// The number of groups.
  int groups() const { return alive().groups(); }
  /// A field of one group's rule by its name, see each_field(). Names of the matrix rule's fields begin with "matrix.".
  /// A flag is 0 or 1. set() takes effect at the next step(), like a change of optimizer::group(). Throws
  /// std::invalid_argument if there is no such group or field, with the names of all fields, or if the field cannot
  /// hold the value; values out of the rule's range are refused by step() or commit_groups().
  double get(int group, std::string const& field) const { return alive().get(group, field); }
  void set(int group, std::string const& field, double value) { alive().set(group, field, value); }
  /// The names of all fields.
  std::vector<std::string> fields() const { return alive().fields(); }
  /// The values that a field may have, see get_interval().
  interval allowed(std::string const& field) const { return alive().allowed(field); }
  void freeze(int group, bool frozen = true) { alive().freeze(group, frozen); }
  void commit_groups() { alive().commit_groups(); }

  /// As in the optimizer.
  step_report report() const { return alive().report(); }
  step_report last_report() const { return alive().last_report(); }
  std::vector<gradient_state> diagnose() const { return alive().diagnose(); }
  double gradient_norm() { return alive().gradient_norm(); }
  double gradient_norm(descent::group g) { return alive().gradient_norm(g); }
  double gradient_norm(std::string const& name) { return alive().gradient_norm(name); }
  memory_report memory() const { return alive().memory(); }
  double bytes_per_parameter() const { return alive().bytes_per_parameter(); }
  std::string explain() const { return alive().explain(); }

  /// As in the optimizer.
  double loss_scale() const { return alive().loss_scale(); }
  float const* loss_scale_pointer() const { return alive().loss_scale_pointer(); }
  loss_scale_state scale_state() const { return alive().scale_state(); }
  void set_scale_state(loss_scale_state const& s) { alive().set_scale_state(s); }
  void unscale() { alive().unscale(); }

  /// As in the optimizer.
  void swap_average() { alive().swap_average(); }
  void reload_values() { alive().reload_values(); }
  bool values_changed() { return alive().values_changed(); }
  void set_step(std::int64_t t) { alive().set_step(t); }
  void broadcast(int root = 0) { alive().broadcast(root); }
  void agree() { alive().agree(); }

  /// Gives the parameters new addresses, see optimizer::rebind. The list may also come from any_parameters. Throws
  /// std::invalid_argument, with nothing changed, if a type is not the optimizer's.
  void rebind(std::vector<any_parameter> const& params) { alive().rebind(params); }
  template <class Value, class Gradient> void rebind(parameters<Value, Gradient> const& params) {
    rebind(any_parameters(params));
  }

  /// Calls write(name, elements) for each piece, see optimizer::save.
  void save(std::function<void(std::string const& name, any_elements const& elements)> const& write) const {
    alive().save(write);
  }
  /// Restores each piece from read(name, elements), see optimizer::load: its answer has as many bytes as `elements`,
  /// the current piece. With `names`, those of all saved pieces, throws if one is missing or left over.
  void load(std::function<any_answer(std::string const& name, any_elements const& elements)> const& read) {
    alive().load(read, nullptr);
  }
  void load(std::function<any_answer(std::string const& name, any_elements const& elements)> const& read,
            std::vector<std::string> const& names) {
    alive().load(read, &names);
  }

 private:
  friend struct detail::run_access;
  detail::any_engine& alive() const {
    if (!of_) detail::refuse_call("any_optimizer", "it is empty, or was moved from");
    return *of_;
  }
  std::unique_ptr<detail::any_engine> of_;
};

/// A policy, or none if it is not wanted, for choose().
template <class Policy> std::optional<Policy> when(bool wanted, Policy const& policy) {
  return wanted ? std::optional(policy) : std::nullopt;
}

namespace detail {
/// Calls make with one more argument in front, unless that is std::monostate.
template <class Make, class One> struct make_with {
  Make const& make;
  One const& one;
  auto operator()(auto const&... others) const {
    if constexpr (std::is_same_v<One, std::monostate>) return make(others...);
    else return make(one, others...);
  }
};
template <class Make, class One> make_with(Make const&, One const&) -> make_with<Make, One>;
}  // namespace detail

/// Calls make(chosen...) with what is known only at run time, and returns its result, which has one type. An
/// std::optional is passed on if it has a value, of an std::variant the alternative that it holds (std::monostate:
/// nothing), everything else as it is:
///
///     any_optimizer opt = choose([&](auto... all) { return any_optimizer{optimizer{params, all...}}; },
///                                std::variant<adamw, lion>{...}, when(config.master, master<float>{}),
///                                when(config.clip > 0, clip_norm{config.clip}));
///
/// make is compiled for every combination: here 2 x 2 x 2 optimizers. A policy that can be set so that it changes
/// nothing, such as clip_norm{1e300} or static_loss_scale{1}, is one optimizer instead of two, but its pass over memory
/// remains.
template <class Make> auto choose(Make const& make) { return make(); }
template <class Make, class First, class... Rest>
auto choose(Make const& make, First const& first, Rest const&... rest) {
  auto const with = [&](auto const& one) { return choose(detail::make_with{make, one}, rest...); };
  if constexpr (requires {
                  first.has_value();
                  *first;
                })
    return first ? with(*first) : with(std::monostate{});
  else if constexpr (requires { std::variant_size<First>::value; }) return std::visit(with, first);
  else return with(first);
}

}  // namespace descent
