// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "all_rules.hpp"

/// Rules that a step, ranks and saved runs tell apart only by their formulas: they have the same abilities.
namespace test {

/// What a rule keeps and needs. Members of state are none, one or several; their number changes nothing else.
template <class Rule> constexpr auto structure_of() {
  using namespace descent;
  constexpr std::size_t slots = detail::members<Rule::template state>;
  std::array<std::size_t, 9> s{slots < 2 ? slots : 2, has_optional_state<Rule>, has_start<Rule>, has_memory<Rule>,
                               detail::counts_before<Rule>(slots), has_state_for_sums<Rule>};
  if constexpr (has_sums<Rule>) s[6] = 1 + std::size_t(Rule::sums_over), s[7] = 1 + has_sums_of_state<Rule>;
  s[8] = has_loss<Rule> + 2 * has_sums_of_memory<Rule>;
  return s;
}
template <class Rows> struct structures_of_rows;
template <class... Rules> struct structures_of_rows<std::tuple<row<Rules>...>> {
  static constexpr std::array structures{structure_of<Rules>()...};
  template <std::size_t I> using rule = std::tuple_element_t<I, std::tuple<Rules...>>;

  /// Whether no other rule before row I has its structure.
  template <std::size_t I> static constexpr bool is_first() {
    constexpr std::array<bool, sizeof...(Rules)> same{std::is_same_v<rule<I>, Rules>...};
    for (std::size_t i = 0; i < I; ++i)
      if (!same[i] && structures[i] == structures[I]) return false;
    return true;
  }
};

/// Calls f(row) for every setting of the first rule of each structure.
template <class F> void each_structure(F f) {
  using all = structures_of_rows<std::remove_cvref_t<decltype(all_rules)>>;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    auto const call = [&]<std::size_t Row>(std::integral_constant<std::size_t, Row>) {
      if constexpr (all::template is_first<Row>()) f(std::get<Row>(all_rules));
    };
    (call(std::integral_constant<std::size_t, I>{}), ...);
  }(std::make_index_sequence<all::structures.size()>{});
}

}  // namespace test
