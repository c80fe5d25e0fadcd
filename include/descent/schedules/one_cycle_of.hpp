// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/schedules/one_cycle.hpp>
#include <descent/schedules/vary.hpp>

namespace descent {

/// One cycle of the learning rate and the opposite cycle of the momentum, between `low` and `high`, as policies:
/// PyTorch's OneCycleLR with cycle_momentum. Any field can be the momentum:
/// `one_cycle_of<&sgd::momentum>(one_cycle{.peak = 0.1, ...})`, `one_cycle_of<&adamw::beta1>(...)`.
template <auto Momentum> constexpr auto one_cycle_of(one_cycle const& c, double low = 0.85, double high = 0.95) {
  return together(learning_rate(c),
                  vary<Momentum>(one_cycle_momentum{low, high, c.steps, c.rise, c.shape, c.three_phases}));
}

}  // namespace descent
