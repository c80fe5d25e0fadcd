// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <set>
#include <tuple>
#include <type_traits>
#include <typeindex>

#include "row.hpp"
#if defined(DESCENT_RULE_FAMILY)
#define DESCENT_TEXT(x) #x
#define DESCENT_ROWS_HEADER(family) DESCENT_TEXT(rows_##family.hpp)
#define DESCENT_ROWS(family) family##_rows
// One more macro each, so that DESCENT_RULE_FAMILY is expanded before it is pasted.
#define DESCENT_ROWS_HEADER_OF(family) DESCENT_ROWS_HEADER(family)
#define DESCENT_ROWS_OF(family) DESCENT_ROWS(family)
#include DESCENT_ROWS_HEADER_OF(DESCENT_RULE_FAMILY)
#else
#include "rows_chain.hpp"
#include "rows_core.hpp"
#include "rows_free.hpp"
#include "rows_more.hpp"
#include "rows_optax.hpp"
#include "rows_torch.hpp"
#endif

/// Every rule of the library, with settings that reach each of its branches. A new rule needs only a row in one of the
/// families to be in every test of laws, storage, sizes and systems. With DESCENT_RULE_FAMILY, as core or torch, these
/// are the rules of that family alone, and no header of another rule is read; with DESCENT_ONE_RULE, as descent::lion,
/// the rows of that rule.
namespace test {

#if defined(DESCENT_ONE_RULE)
template <class Rule> auto rows_of([[maybe_unused]] row<Rule> const& r) {
  if constexpr (std::is_same_v<Rule, DESCENT_ONE_RULE>) return std::tuple(r);
  else return std::tuple();
}
inline auto const all_rules = std::apply([](auto const&... rows) { return std::tuple_cat(rows_of(rows)...); },
                                         DESCENT_ROWS_OF(DESCENT_RULE_FAMILY));
#elif defined(DESCENT_RULE_FAMILY)
inline auto const& all_rules = DESCENT_ROWS_OF(DESCENT_RULE_FAMILY);
#else
inline auto const all_rules = std::tuple_cat(core_rows, torch_rows, optax_rows, free_rows, more_rows, chain_rows);
#endif

/// Calls f(row) for every setting of every rule.
template <class F> void each_rule(F f) {
  std::apply([&](auto const&... rows) { (f(rows), ...); }, all_rules);
}

/// Calls f(row) for every setting of one rule.
template <class Rule, class F> void each_setting(F f) {
  each_rule([&](auto const& r) {
    if constexpr (std::is_same_v<decltype(r), row<Rule> const&>) f(r);
  });
}

/// Calls f<Rule>() for every rule.
template <class F> void each_rule_once(F f) {
  std::set<std::type_index> seen;
  each_rule([&]<class Rule>(row<Rule> const&) {
    if (seen.insert(typeid(Rule)).second) f.template operator()<Rule>();
  });
}

/// A rule without the settings that move the minimum: decay, and subtracting the mean of the gradient.
template <class Rule> Rule with_same_minimum(Rule rule) {
  if constexpr (requires { rule.weight_decay; }) rule.weight_decay = 0;
  if constexpr (requires { rule.lambd; }) rule.lambd = 0;
  if constexpr (requires { rule.l2::weight_decay; }) rule.l2::weight_decay = 0;
  if constexpr (requires { rule.l1::weight_decay; }) rule.l1::weight_decay = 0;
  if constexpr (requires { rule.centralize::on; }) rule.centralize::on = 0;
  return rule;
}

/// Element i depends on its tensor only through the rule's terms.
template <class Rule> inline constexpr bool elementwise = !descent::has_sums<Rule>;

/// Whether tensors depend on each other.
template <class Rule>
inline constexpr bool modelwide = [] {
  if constexpr (descent::has_sums<Rule>) return Rule::sums_over == descent::scope::model;
  else return false;
}();

}  // namespace test
