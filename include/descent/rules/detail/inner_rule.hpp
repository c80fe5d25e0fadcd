// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

#include <string>

/// Rules that wrap another one, `rule`. The outer rule has its own fields lr and weight_decay.
namespace descent::detail {

template <class R>
concept inner_rule = update_rule<R> && !has_sums<R> && !takes_normal<R> && requires(R r) {
  { r.lr } -> std::same_as<double&>;
};

template <class R, class... Memory>
concept has_terms_of = requires(R const r, std::int64_t t, Memory&... old) { r.at(t, old...); };

/// The memory of the inner rule; void if it has none.
template <class Rule> struct inner_memory { using type = void; };
template <has_memory Rule> struct inner_memory<Rule> { using type = typename Rule::memory; };
template <class Rule> using memory_of_inner = typename inner_memory<Rule>::type;

/// The rule with this lr and without decay.
template <class Rule> DESCENT_HD Rule with_lr(Rule rule, double lr) {
  rule.lr = lr;
  if constexpr (requires { rule.weight_decay; }) rule.weight_decay = 0;
  return rule;
}

/// The names of the inner rule's slots; 0 if it has none.
template <class Rule> constexpr auto slots_of_inner() {
  if constexpr (has_slot_names<Rule>) return &Rule::slots[0];
  else return 0;
}

/// Throws if the inner rule's lr or decay is set, because both would be ignored.
template <class Rule> void check_inner(char const* name, Rule const& rule) {
  std::string const instead = std::string("left unset, because ") + name + " has its own";
  require(rule.lr == Rule{}.lr, name, "rule.lr", instead.c_str(), rule.lr);
  if constexpr (requires { rule.weight_decay; })
    require(rule.weight_decay == 0 || rule.weight_decay == Rule{}.weight_decay, name, "rule.weight_decay",
            instead.c_str(), rule.weight_decay);
}

}  // namespace descent::detail
