// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/policies/storage.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/rprop.hpp>

#include <doctest/doctest.h>

#include "support/all_rules.hpp"
#include "support/stall.hpp"

#include <string>
#include <utility>

/// 16-bit values without a master, with updates below half a unit in the last place: a rule stalls with nearest
/// rounding and keeps learning with stochastic rounding.

using namespace test;
namespace ds = descent;

/// Why nearest rounding does not stop the rule at any rate, if so.
template <class Rule> inline constexpr char const* never_stalls = nullptr;
template <>
inline constexpr char const* never_stalls<ds::rprop> = "each element's step grows until it moves the value";
template <> inline constexpr char const* never_stalls<ds::madgrad> = "the value follows sums in the state";
template <> inline constexpr char const* never_stalls<ds::cocob> = "the value is a function of the state alone";

/// Why the state needs more than 16 bits, if so.
template <class Rule> inline constexpr char const* needs_wide_state = nullptr;
template <> inline constexpr char const* needs_wide_state<ds::layerwise<ds::rmsprop>> =
    "its first setting is centered, and v - g_^2 is less than the rounding of v";

namespace {

template <class Value, class... States> void keeps_learning(auto const& rule, char const* never) {
  left_overs const x = compare_roundings<Value, States...>(rule);
  INFO(std::string{ds::type_name<Value>()}, ", lr ", x.rate, ": of the loss float leaves ", x.in_float, ", nearest ",
       x.nearest, ", stochastic ", x.stochastic);
  CHECK(x.in_float < 0.05);
  CHECK(x.stochastic < 0.1);
  if (never) CHECK_MESSAGE(x.nearest < 0.2, never);
  else CHECK(x.nearest > 0.5);
}

/// Calls f(row) for the first setting of every rule, without decay, which moves the minimum.
template <class F> void each_first_setting(F f) {
  each_rule_once([&]<class Rule>() {
    bool first = true;
    each_setting<Rule>([&](row<Rule> const& r) {
      if (!std::exchange(first, false)) return;
      INFO(r.name);
      f(row<Rule>{r.name, with_same_minimum(r.rule)});
    });
  });
}

}  // namespace

TEST_CASE("every rule: stochastic rounding keeps learning where nearest stalls: bfloat16 with its state") {
  each_first_setting([]<class Rule>(row<Rule> const& r) {
    if constexpr (needs_wide_state<Rule>) keeps_learning<ds::bfloat16>(r.rule, never_stalls<Rule>);
    else keeps_learning<ds::bfloat16, ds::states<ds::bfloat16>>(r.rule, never_stalls<Rule>);
  });
}
TEST_CASE("some rules: the same with a state in float, in bfloat16 and half") {
  each_first_setting([]<class Rule>(row<Rule> const& r) {
    if constexpr (in_every_storage<Rule>) {
      keeps_learning<ds::bfloat16>(r.rule, never_stalls<Rule>);
      keeps_learning<ds::half>(r.rule, never_stalls<Rule>);
    }
  });
}
