// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../optimizer.hpp"
#include "../parts/device.hpp"

namespace example {

template <class Value, class Backend, class... Rules>
void optimizers<Value, Backend, rule_group<Rules...>>::make(ds::any_optimizer& made,
                                                            ds::parameters<Value> const& parameters,
                                                            any_rule const& rule, rate_schedule const& rate,
                                                            double clip, Backend backend) {
  auto const make_for = [&](auto const* chosen) {
    if (chosen) made = make_optimizer(parameters, *chosen, rate, clip, backend);
  };
  (make_for(std::get_if<Rules>(&rule)), ...);
}

template <class Level, class Backend, class... Rules>
void optimizers_at<Level, Backend, rule_group<Rules...>>::make(ds::any_optimizer& made,
                                                               ds::parameters<typename Level::value> const& parameters,
                                                               any_rule const& rule, rate_schedule const& rate,
                                                               double clip, Backend backend) {
  auto const make_for = [&](auto const* chosen) {
    if (chosen)
      made = ds::optimizer{parameters, *chosen, ds::learning_rate(rate), ds::clip_norm{clip}, Level{}, backend};
  };
  (make_for(std::get_if<Rules>(&rule)), ...);
}

}  // namespace example
