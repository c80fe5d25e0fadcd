// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/given_state.hpp>
#include <descent/engine/step/outside.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace descent::detail {

/// Calls f for the numbers of the caller that policies point to.
template <class Plan, class F>
void each_policy_input([[maybe_unused]] typename Plan::policies const& policies, [[maybe_unused]] F const& f) {
  if constexpr (has<Plan, kind::loss>) {
    auto const* const where = get<kind::loss>(policies).where;
    f(outside_memory{where, 1, sizeof *where, "loss_at: the loss"});
  }
  if constexpr (has<Plan, kind::gradient_factor>) {
    auto const* const where = get<kind::gradient_factor>(policies).where;
    f(outside_memory{where, 1, sizeof *where, "gradient_factor_at: the factor"});
  }
  if constexpr (Plan::shares_scale) {
    auto const* const where = get<kind::loss_scale>(policies).shared;
    f(outside_memory{where, 1, alignof(shared_scale), "shared_loss_scale: the loss_scaler's scale"});
  }
}

/// Compares what steps and calls read with what steps write. The backend checks that it can reach both.
template <class Plan> class memory_guard {
 public:
  /// Checks what policies point to. Once, before anything is written.
  template <class Layout, class Storage>
  void start(Layout const& where, Storage const& storage, typename Plan::policies const& policies) const {
    each_policy_input<Plan>(policies, [&](outside_memory const& m) { in_use(where, storage).refuse_overlap(m); });
  }
  /// Throws std::invalid_argument if a step writes this memory, which a call reads.
  template <class Layout, class Storage>
  void refuse_overlap(outside_memory const& m, Layout const& where, Storage const& storage) {
    if (m.count == 0) return;
    if (in_use_.empty()) in_use_ = in_use(where, storage);
    in_use_.refuse_overlap(m);
  }
  /// Throws std::invalid_argument if at new addresses values or gradients overlap with what is owned, given or read.
  template <class Layout, class Storage, class Rows>
  void rebind(Layout const& where, std::vector<tensor_addresses> const& addresses, Storage const& storage,
              typename Plan::policies const& policies, [[maybe_unused]] Rows const& rows) {
    auto ranges = where.ranges_at(addresses);
    storage.add_ranges(ranges, where);
    memory_in_use now(std::move(ranges));
    auto const check = [&](outside_memory const& m) { now.refuse_overlap(m); };
    each_policy_input<Plan>(policies, check);
    if constexpr (Plan::selects_rows) rows.each_mask(where, check);
    in_use_ = std::move(now);
  }

 private:
  template <class Layout, class Storage> static memory_in_use in_use(Layout const& where, Storage const& storage) {
    auto ranges = where.memory_ranges();
    storage.add_ranges(ranges, where);
    return memory_in_use(std::move(ranges));
  }
  memory_in_use in_use_;  // when first needed
};

}  // namespace descent::detail
