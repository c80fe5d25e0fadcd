// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer.hpp>
#include <descent/policies/loss_at.hpp>

#include <cstdint>
#include <type_traits>

/// Optimizers for tests of every rule.
namespace test {

/// The loss that rules read.
inline float current_loss = 0.125f;

/// The default system, or the one that a test sets: otherwise each system would need a compiled optimizer of its own.
struct any_system {
  static inline void (*loop)(std::int64_t, descent::detail::loop_body) = descent::default_system::each;
  static constexpr char const* name() { return "any"; }
  static void each(std::int64_t n, descent::detail::loop_body f) { loop(n, f); }
};

/// An optimizer on any_system, unless a policy names a backend, with loss_at if the rule needs it.
template <class List, class Rule, class... Ps> auto optimizer_of(List const& list, Rule const& rule, Ps... policies) {
  if constexpr (!(std::is_same_v<typename Ps::policy_kind, descent::kind::backend> || ...))
    return optimizer_of(list, rule, policies..., descent::host<any_system>{});
  else if constexpr (descent::has_loss<Rule>)
    return descent::optimizer{list, rule, policies..., descent::loss_at{&current_loss}};
  else return descent::optimizer{list, rule, policies...};
}

}  // namespace test
