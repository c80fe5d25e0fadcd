// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer/detail/optimizer_traits.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/report_of.hpp>
#include <descent/engine/step/terms.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace descent {
template <class Value, class Gradient, class Rule, class... Ps> class optimizer;
}

namespace descent::detail {

struct lr_sweeper;
struct run_access;
struct outer_access;

template <class V, class G> void first_argument(parameters<V, G> const&);
template <class V, class G, class R, class... Ps> void first_argument(optimizer<V, G, R, Ps...> const&);
/// Whether optimizer{x, ...} makes an optimizer from a list of parameters, or copies or moves one.
template <class T> concept begins_optimizer = requires(T const& x) { detail::first_argument(x); };
/// Exists only for its static_assert.
template <class First> struct not_parameters {
  static_assert(sizeof(First) == 0,
                "an optimizer begins with a list of parameters: parameters<float> list; list.add(\"w\", values, "
                "gradients, count); optimizer opt{list, rule, policies...}");
  using value = float;
};
template <begins_optimizer First> struct not_parameters<First> {};  // clang 14 looks before it asks for constraints

/// For a constraint that explains itself in the compiler's message: requires(otherwise("what is missing") || there).
/// nvcc shows only the line with the function's name, so keep it on that line.
consteval bool otherwise(char const*) { return false; }

template <class Engine, class Entry>
concept checks_schedules =
    requires(Engine& e, plain_vector<Entry> const& groups) { e.check_schedules(groups, std::int64_t()); };

[[noreturn]] inline void refuse_now(char const* function, std::string const& why) {
  throw std::logic_error(std::string(function) + why);
}

/// What an optimizer holds, and the checks of the order of calls. Engine satisfies the concept `engine` of engine.hpp.
template <class Plan, class Engine> struct optimizer_core {
  using rule = typename Plan::rule;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

  optimizer_core(tensors of, rule const& r) : where(std::move(of)), groups(std::size_t(where.groups), {r}) {
    for (std::size_t g = 0; g < groups.size(); ++g) groups[g].number = std::int32_t(g);
  }

  Engine& alive() const {
    if (!engine) refuse_now("this optimizer", " was moved from");
    return *engine;
  }
  /// The tensors of the model, on whatever rank.
  auto const& whole() const {
    if constexpr (Plan::splits) return alive().whole();
    else return alive(), where;
  }
  /// The number of a parameter.
  std::size_t number_of(std::string const& name) const { return alive(), where.find(name); }
  /// The engine, for a function that waits.
  Engine& waiting(char const* function) const {
    alive().refuse_capture(function);
    return *engine;
  }

  void refuse_averages(char const* function) const {
    if (swapped) refuse_now(function, " between two calls of swap_average(): the values are the averages now");
  }
  void refuse_elsewhere(char const* function) const {
    if (ascended)
      refuse_now(function, Plan::is_sam ? " after ascend(): the values are elsewhere until step()"
                                        : " after move_ahead(): the values are elsewhere until step()");
  }

  void refuse_ready([[maybe_unused]] char const* function) const {
    if constexpr (Plan::overlaps)
      if (alive().any_ready()) refuse_now(function, " after ready(): gradients are on their way until step()");
  }
  /// Waits.
  void refuse_batches(char const* function) const {
    if (auto const n = waiting(function).read_control().batches)
      refuse_now(function, " while micro-batches wait for their update: " + std::to_string(n));
  }
  void refuse_writes(char const* function) const {
    refuse_ready(function);
    if (!where.read_only.empty())
      refuse_now(function, " writes gradients, and that of '" + where.read_only + "' is const");
  }

  /// From now on the gradients count as multiplied by the loss scale.
  void end_unscaled() {
    if constexpr (Plan::unscales) engine->mark_unscaled(false);
    unscaled = false;
  }

  /// On the host, where every schedule can be called: checks the scheduled rules of all groups and their terms.
  void check_schedules([[maybe_unused]] std::int64_t step) const {
    if constexpr (checks_schedules<Engine, entry>) engine->check_schedules(groups, step);
  }
  /// On the host, checks only the terms of the next update.
  void check_terms() const {
    if constexpr (checks_schedules<Engine, entry>) engine->check_next_terms(groups);
  }

  /// Names the field that is to blame for a fault, where the schedules can be called on the host.
  step_report report(typename Plan::policies const& policies, control_block const& c,
                     loss_scale_state const& scale) const {
    std::string cause;
    if constexpr (checks_schedules<Engine, entry> || !follows_steps<typename Plan::policies>)
      cause = cause_of<Plan>(whole(), groups, policies, c);
    return report_of<Plan>(whole(), policies, c, scale, cause);
  }

  self_movable<tensors> where;
  self_movable<plain_vector<entry>> groups;
  sole_pointer<Engine> engine;
  bool swapped = false, ascended = false;  // whether the values are the averages; whether they were moved
  bool unscaled = false;                   // whether unscale() was called for the next step
};

}  // namespace descent::detail
