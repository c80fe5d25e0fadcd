// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "parts/rules.hpp"
#include "parts/schedule.hpp"

#include <descent/any_optimizer.hpp>
#include <descent/descent.hpp>

namespace example {

/// The optimizer of this program. 16-bit types get float master weights, since most updates are too small for
/// them: 1 + 0.001 is 1 in bfloat16.
template <class Value, class Rule, class Backend, class... Policies>
auto make_optimizer(ds::parameters<Value> const& parameters, Rule const& rule, rate_schedule const& rate, double clip,
                    Backend backend, Policies... policies) {
  if constexpr (sizeof(Value) < sizeof(float))
    return ds::optimizer{parameters, rule, ds::learning_rate(rate), ds::clip_norm{clip}, ds::master<float>{},
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

/// The optimizer of a rule known only at run time; with 16 bits, of a common rule.
template <class Value, class Backend>
ds::any_optimizer make_optimizer(ds::parameters<Value> const& parameters, any_rule const& rule,
                                 rate_schedule const& rate, double clip, Backend backend) {
  ds::any_optimizer made;
  each_rule_group<sizeof(Value) < sizeof(float)>([&]<class Group>(Group) {
    optimizers<Value, Backend, Group>::make(made, parameters, rule, rate, clip, backend);
  });
  return made;
}

}  // namespace example
