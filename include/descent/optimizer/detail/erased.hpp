// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/any_elements.hpp>
#include <descent/core/fields.hpp>
#include <descent/optimizer/detail/run_part.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/report.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// What any_optimizer holds.
namespace descent::detail {

[[noreturn]] inline void refuse_call(char const* function, char const* why) {
  throw std::logic_error(std::string(function) + ": " + why);
}

/// Its address says which type something has. It works without run-time type information.
template <class T> inline constexpr char tag_of = 0;

/// A stream, a pointer of any type.
struct any_stream {
  void* at;
  void const* tag;
  template <class T> operator T*() const {
    if (tag != &tag_of<T>) refuse_call("step(stream)", "the stream has a different type than the backend's");
    return static_cast<T*>(at);
  }
};

/// An optimizer of any type.
struct any_engine {
  virtual ~any_engine() = default;
  virtual void const* tag() const = 0;
  virtual void step(double weight) = 0;
  virtual void step_on(any_stream const& stream, double weight) = 0;
  virtual void flush() = 0;
  virtual void zero_grad() = 0;
  virtual void ascend() = 0;
  virtual void move_ahead() = 0;
  virtual void ready(std::size_t parameter) = 0;
  virtual void select_rows(std::string const& name, std::uint8_t const* mask) = 0;
  virtual void observe(double metric) = 0;
  virtual void observe(float const* metric) = 0;
  virtual int groups() const = 0;
  virtual double get(int group, std::string const& field) = 0;
  virtual void set(int group, std::string const& field, double value) = 0;
  virtual std::vector<std::string> fields() = 0;
  virtual interval allowed(std::string const& field) = 0;
  virtual void freeze(int group, bool frozen) = 0;
  virtual void commit_groups() = 0;
  virtual step_report report() const = 0;
  virtual step_report last_report() const = 0;
  virtual std::vector<gradient_state> diagnose() const = 0;
  virtual double gradient_norm() = 0;
  virtual double gradient_norm(descent::group g) = 0;
  virtual double gradient_norm(std::string const& name) = 0;
  virtual memory_report memory() const = 0;
  virtual double bytes_per_parameter() const = 0;
  virtual std::string explain() const = 0;
  virtual double loss_scale() const = 0;
  virtual float const* loss_scale_pointer() const = 0;
  virtual loss_scale_state scale_state() const = 0;
  virtual void set_scale_state(loss_scale_state const& s) = 0;
  virtual void unscale() = 0;
  virtual void swap_average() = 0;
  virtual void reload_values() = 0;
  virtual bool values_changed() = 0;
  virtual void set_step(std::int64_t t) = 0;
  virtual void broadcast(int root) = 0;
  virtual void agree() = 0;
  virtual void rebind(std::vector<any_parameter> const& params) = 0;
  virtual void save(any_writer const& write) = 0;
  virtual void load(any_reader const& read, std::vector<std::string> const* names) = 0;
  virtual std::unique_ptr<run_part> part() = 0;
};

template <class Optimizer> struct erased final : any_engine {
  Optimizer of;
  explicit erased(Optimizer&& from) : of(std::move(from)) {}

  void const* tag() const override { return &tag_of<Optimizer>; }
  void step(double weight) override { of.step(weight); }
  void step_on([[maybe_unused]] any_stream const& stream, [[maybe_unused]] double weight) override {
    if constexpr (requires { of.step(stream, weight); }) of.step(stream, weight);
    else refuse_call("step(stream)", "the host has no streams");
  }
  void flush() override {
    if constexpr (requires { of.flush(); }) of.flush();
    else refuse_call("flush()", "give the policy accumulate{n}");
  }
  void zero_grad() override { of.zero_grad(); }
  void ascend() override {
    if constexpr (requires { of.ascend(); }) of.ascend();
    else refuse_call("ascend()", "give the policy sam{}");
  }
  void move_ahead() override {
    if constexpr (requires { of.move_ahead(); }) of.move_ahead();
    else refuse_call("move_ahead()", "give the policy gradient_ahead{}");
  }
  void ready([[maybe_unused]] std::size_t parameter) override {
    if constexpr (requires { of.ready(parameter); }) of.ready(parameter);
    else refuse_call("ready()", "give replicated or sharded overlap{}");
  }
  void select_rows([[maybe_unused]] std::string const& name, [[maybe_unused]] std::uint8_t const* mask) override {
    if constexpr (requires { of.select_rows(name, mask); }) of.select_rows(name, mask);
    else refuse_call("select_rows()", "give the policy masked_rows{}");
  }
  void observe(double metric) override { observe_any(metric); }
  void observe(float const* metric) override { observe_any(metric); }

  int groups() const override { return of.groups(); }
  double get(int group, std::string const& field) override {
    double value = 0;
    with_rule(group, field, [&](auto const& rule, std::string const& name) { value = get_field(rule, name); });
    return value;
  }
  void set(int group, std::string const& field, double value) override {
    with_rule(group, field, [&](auto& rule, std::string const& name) { set_field(rule, name, value); });
  }
  std::vector<std::string> fields() override {
    std::vector<std::string> names;
    each_field(of.group(0), [&](std::string const& name, auto&) { names.push_back(name); });
    if constexpr (requires { of.matrix_rule(0); })
      each_field(of.matrix_rule(0), [&](std::string const& name, auto&) { names.push_back(of_matrices + name); });
    return names;
  }
  interval allowed(std::string const& field) override {
    interval found;
    with_rule(0, field, [&](auto const& rule, std::string const& name) { found = get_interval(rule, name); });
    return found;
  }
  void freeze(int group, bool frozen) override { of.freeze(group, frozen); }
  void commit_groups() override { of.commit_groups(); }

  step_report report() const override { return of.report(); }
  step_report last_report() const override { return of.last_report(); }
  std::vector<gradient_state> diagnose() const override { return of.diagnose(); }
  double gradient_norm() override { return of.gradient_norm(); }
  double gradient_norm(descent::group g) override { return of.gradient_norm(g); }
  double gradient_norm(std::string const& name) override { return of.gradient_norm(name); }
  memory_report memory() const override { return of.memory(); }
  double bytes_per_parameter() const override { return of.bytes_per_parameter(); }
  std::string explain() const override { return of.explain(); }

  double loss_scale() const override { return of.loss_scale(); }
  float const* loss_scale_pointer() const override { return of.loss_scale_pointer(); }
  loss_scale_state scale_state() const override { return of.scale_state(); }
  void set_scale_state([[maybe_unused]] loss_scale_state const& s) override {
    if constexpr (requires { of.set_scale_state(s); }) of.set_scale_state(s);
    else refuse_call("set_scale_state()", "no scale of its own: give a loss scale, or set the loss_scaler's");
  }
  void unscale() override {
    if constexpr (requires { of.unscale(); }) of.unscale();
    else refuse_call("unscale()", "needs a loss scale, gradients that are not half, and no accumulate");
  }

  void swap_average() override {
    if constexpr (requires { of.swap_average(); }) of.swap_average();
    else refuse_call("swap_average()", "there is no average: give the policy ema{} or swa{}");
  }
  void reload_values() override { of.reload_values(); }
  bool values_changed() override {
    if constexpr (requires { of.values_changed(); }) return of.values_changed();
    else refuse_call("values_changed()", "needs master<M>, and values that are the masters rounded to nearest");
  }
  void set_step(std::int64_t t) override { of.set_step(t); }
  void broadcast([[maybe_unused]] int root) override {
    if constexpr (requires { of.broadcast(root); }) of.broadcast(root);
    else refuse_call("broadcast()", "it gives all ranks what one of them has: give replicated{comm}");
  }
  void agree() override {
    if constexpr (requires { of.agree(); }) of.agree();
    else refuse_call("agree()", "there is one rank: give the policy replicated{comm} or sharded{comm}");
  }

  void rebind(std::vector<any_parameter> const& params) override { rebind_as(params, of); }

  void save(any_writer const& write) override { run_access::save(of, write); }
  void load(any_reader const& read, std::vector<std::string> const* names) override {
    run_access::load(of, read, names);
  }
  std::unique_ptr<run_part> part() override { return std::make_unique<run_access::part<Optimizer>>(of); }

 private:
  template <class Metric> void observe_any([[maybe_unused]] Metric metric) {
    if constexpr (requires { of.observe(metric); }) of.observe(metric);
    else refuse_call("observe()", "give the policy on_plateau{}");
  }

  static constexpr char of_matrices[] = "matrix.";
  /// Calls f(rule, name) with the rule that has the field.
  template <class F> void with_rule(int group, std::string const& field, F const& f) {
    if constexpr (requires { of.matrix_rule(group); })
      if (field.starts_with(of_matrices)) return f(of.matrix_rule(group), field.substr(sizeof of_matrices - 1));
    f(of.group(group), field);
  }

  template <template <class, class, class, class...> class Of, class Value, class Gradient, class... More>
  static void rebind_as(std::vector<any_parameter> const& params, Of<Value, Gradient, More...>& to) {
    to.rebind(parameters_of<Value, Gradient>(params));
  }
};

}  // namespace descent::detail
