// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <string>
#include <tuple>

namespace descent {

struct asgd;
struct lars;
struct nadam;
struct prodigy;
struct yogi;

}  // namespace descent

/// A family of rules: a header rows_<family>.hpp with a tuple <family>_rows.
namespace test {

/// One setting of a rule.
template <class Rule> struct row {
  std::string name;
  Rule rule;
};
template <class Rule> row(char const*, Rule) -> row<Rule>;

/// How far one step may be from the rounded step in double, in ulp of the larger of the numbers before and after. It is
/// above 4 where a sum of larger terms may nearly cancel, so that their rounding shows in a small number.
template <class Rule> inline constexpr double most_ulps = 4;

/// Whether a rule is tested with all combinations of storage types, and not only with enough that any two types meet.
template <class Rule> inline constexpr bool in_every_storage = false;

/// Exceptions to the laws that hold for almost every rule: whether the state depends on lr, whether a value moves
/// although lr is 0, and whether one moves although its gradient is and was zero.
template <class Rule> inline constexpr bool lr_in_state = false;
template <class Rule> inline constexpr bool moves_without_lr = false;
template <class Rule> inline constexpr bool moves_by_itself = false;

/// Whether the rule has the same bits on host and device: not with functions of the mathematical library.
template <class Rule> inline constexpr bool same_bits_on_device = true;

// Rules that are parts of chains are here, so that rows_chain.hpp needs none of the other families.
template <> inline constexpr bool lr_in_state<descent::asgd> = true;  // ax is a mean of p
template <> inline constexpr bool lr_in_state<descent::lars> = true;
template <> inline constexpr bool lr_in_state<descent::prodigy> = true;         // its sums contain lr
template <> inline constexpr bool moves_by_itself<descent::asgd> = true;        // lambd shrinks p
template <> inline constexpr bool moves_by_itself<descent::yogi> = true;        // m starts at `initial`
template <> inline constexpr bool same_bits_on_device<descent::asgd> = false;   // pow in eta
template <> inline constexpr bool same_bits_on_device<descent::nadam> = false;  // pow in mu

}  // namespace test
