// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "parts/level.hpp"
#include "parts/rules.hpp"
#include "parts/schedule.hpp"

#include <descent/any_optimizer.hpp>
#include <descent/descent.hpp>

#include <type_traits>

namespace example {

/// The optimizer of this program. 16-bit types get float master weights, since most updates are too small for
/// them: 1 + 0.001 is 1 in bfloat16.
template <class Value, class Rule, class Backend, class... Policies>
auto make_optimizer(ds::parameters<Value> const& parameters, Rule const& rule, rate_schedule const& rate, double clip,
                    Backend backend, Policies... policies) {
  if constexpr (sizeof(Value) < sizeof(float))
    return ds::optimizer{parameters,  rule,   ds::learning_rate(rate), ds::clip_norm{clip}, ds::master<float>{},
                         policies..., backend};
  else return ds::optimizer{parameters, rule, ds::learning_rate(rate), ds::clip_norm{clip}, policies..., backend};
}

/// The optimizers of a group of rules. Each group is its own unit in optimizers/: all take long to compile.
template <class Value, class Backend, class Group> struct optimizers;

template <class Value, class Backend, class... Rules>
struct optimizers<Value, Backend, rule_group<Rules...>> {
  /// Sets `made` if the rule is in the group.
  static void make(ds::any_optimizer& made, ds::parameters<Value> const& parameters, any_rule const& rule,
                   rate_schedule const& rate, double clip, Backend backend);
};

/// The optimizers of level_rules at one of the levels of ds::amp, in a unit of their own as well.
template <class Level, class Backend, class Group = level_rules> struct optimizers_at;

template <class Level, class Backend, class... Rules>
struct optimizers_at<Level, Backend, rule_group<Rules...>> {
  static void make(ds::any_optimizer& made, ds::parameters<typename Level::value> const& parameters,
                   any_rule const& rule, rate_schedule const& rate, double clip, Backend backend);
};

/// The optimizer of a rule known only at run time; with 16 bits, of a common rule. At O1, which is of float, and at O2
/// and O3, which are of half, of one of level_rules.
template <class Value, class Backend>
ds::any_optimizer make_optimizer(ds::parameters<Value> const& parameters, any_rule const& rule,
                                 rate_schedule const& rate, double clip, Backend backend, opt_level level) {
  ds::any_optimizer made;
  auto const make_at = [&]<class Level>(Level) {
    if constexpr (std::is_same_v<typename Level::value, Value>)
      optimizers_at<Level, Backend>::make(made, parameters, rule, rate, clip, backend);
  };
  if (level == opt_level::O1) make_at(ds::amp::O1{});
  if (level == opt_level::O2) make_at(ds::amp::O2{});
  if (level == opt_level::O3) make_at(ds::amp::O3{});
  if (made) return made;

  each_rule_group<sizeof(Value) < sizeof(float)>([&]<class Group>(Group) {
    optimizers<Value, Backend, Group>::make(made, parameters, rule, rate, clip, backend);
  });
  return made;
}

}  // namespace example
