// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/fields.hpp>
#include <descent/ranks/detail/differences.hpp>
#include <descent/engine/step/explain.hpp>
#include <descent/engine/step/layout.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/engine/step/terms.hpp>
#include <descent/core/detail/containers.hpp>
#include <descent/core/detail/each_setting.hpp>
#include <descent/core/detail/floating_point_mode.hpp>
#include <descent/core/detail/policy_settings.hpp>
#include <descent/version.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// What ranks must have in common before they train together.
namespace descent::detail {

inline std::string exact(double x) {
  floating_point_scope const to_nearest;  // printf rounds as the thread does, and ranks compare texts
  return printed("%.17g", x);
}

template <class T> std::string numbers_as_text(T const& x) {
  std::string text;
  each_number(x, [&](auto number) { text += " " + exact(double(number)); });
  return text;
}

inline std::string fact_of_shared(loss_scale_state const& s) { return "shared loss scale " + exact(double(s.scale)); }

/// A new number for each optimizer of this process.
inline std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// A hash of what must be equal on all ranks in a call: the call itself, t, the number of skipped updates, the
/// plateau's factor, a sweep's rate, the loss scale, whether gradients are unscaled, and hash_of_groups(). It has 32
/// bits, so that a sum over ranks is exact.
DESCENT_HD inline double hash_of_call(std::uint64_t call, control_block const& c, loss_scale_state const& scale,
                                      std::uint64_t groups) {
  std::uint64_t h = call;
  auto const add = [&](auto const& x) {
    auto const* bytes = reinterpret_cast<unsigned char const*>(&x);
    for (std::size_t i = 0; i < sizeof x; ++i) h = (h ^ bytes[i]) * 0x100000001b3;
  };
  add(c.step), add(c.skipped), add(c.plateau.value), add(c.sweep), add(c.unscaled), add(scale.scale), add(groups);
  return double(h >> 32);
}
/// What ranks of a model must have in common besides hash_of_call(): the weight of the gradients on all data ranks.
template <class Plan>
DESCENT_HD double weight_in_model([[maybe_unused]] control_block const& c,
                                  [[maybe_unused]] typename Plan::policies const& policies,
                                  [[maybe_unused]] step_call const& call) {
  if constexpr (Plan::parallel) return get<kind::parallel>(policies).now->weights;
  else return weight_of<Plan>(c, call);
}
template <class Plan>
DESCENT_HD std::uint64_t hash_of_weight(control_block const& c, typename Plan::policies const& policies,
                                        step_call const& call) {
  return __builtin_bit_cast(std::uint64_t, weight_in_model<Plan>(c, policies, call));
}
/// Identifies a call by the function's name and the optimizer's number.
inline std::uint64_t call_of(char const* name, std::uint64_t number) {
  return hash_of(name) ^ number * 0x9e3779b97f4a7c15;
}

/// Rules, schedules and policies are compared by their fields and at these updates. Differences in what has no fields
/// that can be read are found if they show there.
inline constexpr std::int64_t compared_updates[] = {1, 2, 3, 10, 100, 1000, 10000, 100000, 1000000};

/// The terms of an update of one group for given sums and a loss of 1, and the initial state of a parameter of 1.
template <class Plan>
std::string terms_as_text(group_entry<typename Plan::rule> const& g, typename Plan::policies const& policies,
                          std::int64_t t, [[maybe_unused]] int which) {
  using rule = typename Plan::rule;
  rule const r = scheduled(g.rule, policies, t - 1, g.number);
  memory_of<rule> memory{};
  auto const terms = [&] {
    if constexpr (Plan::sums) {
      typename Plan::update::template sums<double> sums;
      for (int i = 0; i < int(Plan::sum_count); ++i)
        real_at<double>(sums, i) = which == 2 + i ? 1e12 : 1;  // all 1, or one large
      if constexpr (has_loss<rule> && has_memory<rule>) return terms_at<Plan>(r, policies, t, sums, memory, 1.0);
      else if constexpr (has_loss<rule>) return terms_at<Plan>(r, policies, t, sums, 1.0);
      else if constexpr (has_memory<rule>) return terms_at<Plan>(r, policies, t, sums, memory);
      else return terms_at<Plan>(r, policies, t, sums);
    } else if constexpr (has_memory<rule>) {
      return terms_at<Plan>(r, policies, t, memory);
    } else {
      return terms_at<Plan>(r, policies, t);
    }
  }();
  std::string text;
  auto const add = [&](auto const& numbers, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) text += " " + exact(real_at<double>(numbers, i));
  };
  add(terms, members<Plan::update::template terms>);
  if constexpr (has_start<rule>) text += ", start", add(r.start(1.0), members<rule::template state>);
  if constexpr (has_optional_state<rule>)
    for (std::size_t i = 0; i < Plan::slots; ++i)
      if (!r.uses(i)) text += ", no " + slot_name<rule>(i);
  return text;
}

/// The terms of an update of one matrix.
template <class Rule, class Policies>
std::string matrix_terms_as_text(Rule const& rule, Policies const& policies, std::int64_t t, shape s, int group) {
  std::string text;
  auto const terms = scheduled_for_matrices(rule, policies, t - 1, group).at(t, s);
  for (std::size_t i = 0; i < members<Rule::template terms>; ++i) text += " " + exact(real_at<double>(terms, i));
  return text;
}

/// A hash of the groups: which are frozen, and all numbers in their rules, or the terms of a rule whose fields cannot
/// be inspected.
template <class Plan>
std::uint64_t hash_of_groups(plain_vector<group_entry<typename Plan::rule>> const& groups,
                             typename Plan::policies const& policies) {
  std::uint64_t h = hash_of("");
  auto const add = [&](auto x) { h = hash_of({reinterpret_cast<char const*>(&x), sizeof x}, h); };
  for (auto const& g : groups) {
    add(g.frozen);
    if (each_number(g.rule, add)) continue;
    for (std::int64_t t : compared_updates)
      for (int which = 1; which < 2 + int(Plan::sum_count); ++which)
        h = hash_of(terms_as_text<Plan>(g, policies, t, which), h);
  }
  return h;
}

/// The same for the rules of matrices: their numbers, or the terms of a matrix of 3 x 2.
template <class Plan, class Rules>
std::uint64_t hash_of_matrix_rules(Rules const& rules, typename Plan::policies const& policies) {
  std::uint64_t h = hash_of("");
  auto const add = [&](auto x) { h = hash_of({reinterpret_cast<char const*>(&x), sizeof x}, h); };
  for (std::size_t g = 0; g < rules.size(); ++g) {
    if (each_number(rules[g], add)) continue;
    for (std::int64_t t : compared_updates)
      h = hash_of(matrix_terms_as_text(rules[g], policies, t, shape{3, 2}, int(g)), h);
  }
  return h;
}

/// The fields of a rule that have names, one fact for each.
template <class Rule> void add_field_facts(std::vector<std::string>& facts, std::string const& of, Rule rule) {
  each_setting(rule, "", [&](std::string const& name, auto const& x) {
    facts.push_back(name + " " + of + " is " + text_of_setting(x));
  });
}
/// The same for a policy.
template <class P> void add_policy_facts(std::vector<std::string>& facts, P const& policy) {
  each_policy_setting(policy, [&](std::string const& name, auto const& x) {
    facts.push_back(name + " of " + name_of_policy<P>() + " is " + text_of_setting(x));
  });
}
/// All numbers in a rule, in one fact, if not all fields have names.
template <class Rule>
void add_number_fact(std::vector<std::string>& facts, std::string const& of, Rule const& rule) {
  if (has_named_settings<Rule>()) return;
  facts.push_back("fields of " + of + ":");
  each_number(rule, [&](auto x) { facts.back() += " " + exact(double(x)); });
}
/// What changes from step to step, and the groups, to say what differs between ranks.
template <class Groups>
std::vector<std::string> facts_of_control(control_block const& c, loss_scale_state const& scale, Groups const& groups) {
  std::vector<std::string> facts{"t is " + std::to_string(c.step),
                                 std::to_string(c.skipped) + " updates were skipped",
                                 "loss scale is " + exact(double(scale.scale)),
                                 c.unscaled ? "unscale() was called" : "unscale() was not called",
                                 "the factor of on_plateau is " + exact(c.plateau.value),
                                 "the learning rate of a sweep is " + exact(c.sweep)};
  for (auto const& g : groups)
    facts.push_back("group " + std::to_string(g.number) + " is " + (g.frozen ? "frozen" : "not frozen"));
  for (auto const& g : groups) add_field_facts(facts, "of group " + std::to_string(g.number), g.rule);
  for (auto const& g : groups) add_number_fact(facts, "group " + std::to_string(g.number), g.rule);
  return facts;
}
inline std::string fact_of_weight(double weight) { return "the weight is " + exact(weight); }
/// What hash_of_call() stands for and, in a model, the weight.
template <class Groups>
std::vector<std::string> facts_of_call(std::string const& call, control_block const& c, loss_scale_state const& scale,
                                       Groups const& groups, double const* weight = nullptr) {
  std::vector<std::string> facts{call};
  if (weight) facts.push_back(fact_of_weight(*weight));
  for (auto& fact : facts_of_control(c, scale, groups)) facts.push_back(std::move(fact));
  return facts;
}
/// The rules of matrices.
template <class Rules> std::vector<std::string> facts_of_matrix_rules(Rules const& rules) {
  std::vector<std::string> facts;
  for (std::size_t g = 0; g < rules.size(); ++g)
    add_field_facts(facts, "of the matrix rule of group " + std::to_string(g), rules[g]);
  for (std::size_t g = 0; g < rules.size(); ++g)
    add_number_fact(facts, "the matrix rule of group " + std::to_string(g), rules[g]);
  return facts;
}

/// The training setup as facts: library version, types, tensors if ranks have the same, and rules and policies at a
/// few updates.
template <class Plan, bool Tensors = true>
std::vector<std::string> facts_of(layout<typename Plan::value, typename Plan::gradient> const& where,
                                  plain_vector<group_entry<typename Plan::rule>> const& groups,
                                  typename Plan::policies const& policies) {
  std::vector<std::string> facts{std::string("descent ") + version, "rule and policies " + type_text<Plan>()};
  if (Tensors) facts.push_back(std::to_string(where.tensors.size()) + " parameters");
  facts.push_back(std::to_string(groups.size()) + " groups");
  for (std::size_t t = 0; t < where.tensors.size() && Tensors; ++t) {
    auto const& x = where.tensors[t];
    facts.push_back("parameter " + std::to_string(t) + " '" + where.names[t] + "' of " + std::to_string(x.count) +
                    " elements in " + std::to_string(where.columns[t]) + " columns, types " + std::to_string(x.types) +
                    ", group " + std::to_string(x.group) + (x.matrix ? ", a matrix" : ""));
  }
  for (auto const& g : groups)
    if (g.frozen) facts.push_back("group " + std::to_string(g.number) + " is frozen");
  for (auto const& g : groups) add_field_facts(facts, "of group " + std::to_string(g.number), g.rule);
  if constexpr (Plan::has_matrices) add_field_facts(facts, "of the matrix rule", get<kind::matrices>(policies).rule);
  policies.each([&](auto const& p) { add_policy_facts(facts, p); });
  for (std::int64_t t : compared_updates) {
    std::string const at = ", update " + std::to_string(t) + ":";
    for (auto const& g : groups)
      for (int which = 1; which < 2 + int(Plan::sum_count); ++which)
        facts.push_back("terms of group " + std::to_string(g.number) + at + terms_as_text<Plan>(g, policies, t, which));
    if constexpr (Plan::has_step_terms) {
      auto const k = find_step_terms<Plan>(groups[0].rule, policies, t);
      std::string text = "policies" + at;
      each_stage(typename Plan::stages{},
                 [&]<class P>() { text += " " + rule_name<P>() + numbers_as_text(k.template of<P>()) + ","; });
      facts.push_back(text + " seeds " + std::to_string(k.noise_seed) + " " + std::to_string(k.rounding_seed));
    }
    if constexpr (has<Plan, kind::accumulation>)
      facts.push_back("micro-batches" + at + " " + std::to_string(micro_batches<Plan>(policies, t)));
  }
  if constexpr (Plan::has_matrices) {
    auto const& rule = get<kind::matrices>(policies).rule;
    for (std::int64_t t : compared_updates)
      for (std::size_t i = 0; i < where.tensors.size() && Tensors; ++i)
        if (auto const& x = where.tensors[i]; x.matrix)
          facts.push_back(
              "terms of matrix '" + where.names[i] + "', update " + std::to_string(t) + ":" +
              matrix_terms_as_text(rule, policies, t, {x.count / where.columns[i], where.columns[i]}, x.group));
    add_number_fact(facts, "the matrix rule", rule);
  }
  for (auto const& g : groups) add_number_fact(facts, "group " + std::to_string(g.number), g.rule);
  control_block const c = start_of<Plan>(policies);
  facts.push_back("loss scale " + exact(double(c.scale.scale)));
  return facts;
}

}  // namespace descent::detail
