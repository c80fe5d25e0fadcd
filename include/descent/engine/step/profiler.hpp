// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/engine/step/plan.hpp>

namespace descent::detail {

template <class P> concept names_ranges = requires(char const* name) { P::begin(name); };

struct no_range {};

/// Begins a range for a profiler, which ends with the life of the result. Without a policy of kind::profiler, nothing.
template <class Plan> auto begin_range([[maybe_unused]] char const* name) {
  if constexpr (has<Plan, kind::profiler>) {
    using policy = typename Plan::template policy<kind::profiler>;
    static_assert(names_ranges<policy>,
                  "a policy of kind::profiler needs 'static auto begin(char const* name)', whose result ends the range "
                  "when it is destroyed");
    if constexpr (names_ranges<policy>) return policy::begin(name);
  } else {
    return no_range{};
  }
}

}  // namespace descent::detail
