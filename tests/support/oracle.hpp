// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>
#include <descent/core/rule.hpp>

#include "larger.hpp"
#include "optimizer_of.hpp"
#include "problem.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace test {

/// A rule in double, driven by the plainest loop: no chunks, packets, threads or storage types.
template <class Rule> struct oracle {
  using state = typename Rule::template state<double>;
  using terms = typename Rule::template terms<double>;
  struct tensor {
    std::vector<double> p, g;
    std::vector<state> s;
    std::size_t group = 0;
  };
  template <class R> struct memory_type {
    struct type {};
  };
  template <descent::has_memory R> struct memory_type<R> { using type = typename R::memory; };

  std::vector<Rule> rules;   // one for each group
  std::vector<char> frozen;  // one for each group
  std::vector<tensor> tensors;
  std::vector<terms> used;  // by each tensor in the last step
  std::vector<typename memory_type<Rule>::type> memories;
  std::int64_t t = 0;

  explicit oracle(Rule const& rule, int groups = 1) : rules(std::size_t(groups), rule), frozen(std::size_t(groups)) {}

  template <class Value, class Gradient>
  oracle(Rule const& rule, problem<Value, Gradient> const& from, int groups = 1) : oracle(rule, groups) {
    for (std::size_t k = 0; k < from.value.size(); ++k) {
      std::vector<double> p;
      for (Value x : from.value[k]) p.push_back(descent::widen<double>(x));
      add(p, std::size_t(from.group[k]));
    }
  }

  void add(std::vector<double> const& p, std::size_t group = 0) {
    tensor x{p, std::vector<double>(p.size()), std::vector<state>(p.size()), group};
    if constexpr (descent::has_start<Rule>)
      for (std::size_t i = 0; i < p.size(); ++i) x.s[i] = rules[group].start(p[i]);
    tensors.push_back(x);
  }

  template <class Value, class Gradient> void take_gradients(problem<Value, Gradient> const& from) {
    for (std::size_t k = 0; k < tensors.size(); ++k)
      for (std::size_t i = 0; i < tensors[k].g.size(); ++i) tensors[k].g[i] = descent::widen<double>(from.grad[k][i]);
  }

  /// The largest difference between the values; NaN if one is NaN.
  template <class Value, class Gradient> double away_from(problem<Value, Gradient> const& p) const {
    double most = 0;
    for (std::size_t k = 0; k < tensors.size(); ++k)
      for (std::size_t i = 0; i < tensors[k].p.size(); ++i)
        most = larger(most, std::abs(descent::widen<double>(p.value[k][i]) - tensors[k].p[i]));
    return most;
  }

  void step(double factor = 1) {
    ++t;
    used.assign(tensors.size(), {});
    if constexpr (descent::has_sums<Rule>) {
      sums_and_terms(factor);
    } else {
      memories.resize(rules.size());
      std::vector<terms> of_group;
      for (std::size_t g = 0; g < rules.size(); ++g) {
        if constexpr (descent::has_memory<Rule>) of_group.push_back(frozen[g] ? terms{} : rules[g].at(t, memories[g]));
        else of_group.push_back(rules[g].at(t));
      }
      for (std::size_t k = 0; k < tensors.size(); ++k) used[k] = of_group[tensors[k].group];
    }
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      tensor& x = tensors[k];
      if (frozen[x.group]) continue;
      for (std::size_t i = 0; i < x.p.size(); ++i) x.p[i] = Rule::update(x.p[i], factor * x.g[i], x.s[i], used[k]);
    }
  }

 private:
  void sums_and_terms(double factor) {
    using sums = typename Rule::template sums<double>;
    using numbers = std::array<double, sizeof(sums) / sizeof(double)>;
    bool const per_tensor = Rule::sums_over == descent::scope::tensor;
    memories.resize(per_tensor ? tensors.size() : rules.size());
    numbers total{};
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      tensor& x = tensors[k];
      if (frozen[x.group]) continue;
      if (per_tensor) total = {};
      for (std::size_t i = 0; i < x.p.size(); ++i) {
        numbers const one = std::bit_cast<numbers>(
            contribution(x.p[i], factor * x.g[i], x.s[i], terms_for_sums(x.group, memories[per_tensor ? k : x.group])));
        for (std::size_t c = 0; c < one.size(); ++c) total[c] += one[c];
      }
      if (per_tensor) used[k] = final_terms(rules[x.group], std::bit_cast<sums>(total), memories[k]);
    }
    if (per_tensor) return;
    for (std::size_t g = 0; g < rules.size(); ++g) {
      terms const k = final_terms(rules[g], std::bit_cast<sums>(total), memories[g]);
      for (std::size_t i = 0; i < tensors.size(); ++i)
        if (tensors[i].group == g) used[i] = k;
    }
  }
  terms terms_for_sums(std::size_t group, auto& memory) {
    if constexpr (descent::has_sums_of_memory<Rule>) return rules[group].at(t, memory);
    else return rules[group].at(t);
  }
  static auto contribution(double p, double g, state const& s, terms const& k) {
    if constexpr (descent::has_sums_of_state<Rule>) return Rule::sum(p, g, s, k);
    else return Rule::sum(p, g, k);
  }
  terms final_terms(Rule const& rule, auto const& total, auto& memory) const {
    constexpr bool keeps = descent::has_memory<Rule>;
    if constexpr (descent::has_loss<Rule> && keeps) return rule.at(t, total, memory, current_loss);
    else if constexpr (descent::has_loss<Rule>) return rule.at(t, total, current_loss);
    else if constexpr (keeps) return rule.at(t, total, memory);
    else return rule.at(t, total);
  }
};

}  // namespace test
