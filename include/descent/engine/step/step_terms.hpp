// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/plan.hpp>
#include <descent/engine/step/scheduled.hpp>

#include <cstdint>

namespace descent::detail {

/// What the update of an element needs for policies, in addition to the rule's terms.
template <class Real> struct step_terms {
  Real limit, noise, keep, take;  // of clip_value, gradient_noise, the average (e <- keep e + take p)
  Real pull, outer_momentum;      // of lookahead, outer or ema_nesterov
  Real outer_take;                // 1 - outer_momentum, of ema_nesterov
  std::int64_t t;
  std::uint64_t noise_seed, rounding_seed;
};
struct no_step_terms {};
template <class Plan>
using step_terms_of = std::conditional_t<Plan::has_step_terms, step_terms<typename Plan::real>, no_step_terms>;

/// The step terms of update t. `rule` is that of group 0. If the values lead, calls the schedules of update t + 1.
template <class Plan>
DESCENT_HD step_terms_of<Plan> find_step_terms([[maybe_unused]] typename Plan::rule const& rule,
                                               [[maybe_unused]] typename Plan::policies const& policies,
                                               [[maybe_unused]] std::int64_t t,
                                               [[maybe_unused]] rate_change const& rates = {}) {
  step_terms_of<Plan> k{};
  if constexpr (Plan::has_step_terms) {
    using real = typename Plan::real;
    k.t = t;
    if constexpr (has<Plan, kind::clip_value>) k.limit = real(get<kind::clip_value>(policies).c);
    if constexpr (has<Plan, kind::noise>) {
      auto const& noise = get<kind::noise>(policies);
      k.noise = real(float(noise.deviation(t - 1)));  // as precise as the normals; drops pow's last bits
      k.noise_seed = noise.seed;
    }
    if constexpr (takes_normal<typename Plan::rule>) k.noise_seed = rule.seed;
    if constexpr (has<Plan, kind::rounding>) k.rounding_seed = get<kind::rounding>(policies).seed;
    if constexpr (has<Plan, kind::average>) {
      double const weight = get<kind::average>(policies).weight(t);
      k.keep = real(1 - weight);
      k.take = real(weight);
    }
    if constexpr (has<Plan, kind::lookahead>) {
      auto const& slow = get<kind::lookahead>(policies);
      double pull = slow.pull(t);
      if constexpr (Plan::leads && has_lr<typename Plan::rule>)
        if (pull != 0 && slow.follows_lr) pull *= slow.part(scheduled(rule, policies, t, 0, rates).lr);
      k.pull = real(pull);
    }
    if constexpr (Plan::has_outer) k.outer_momentum = real(get<kind::lookahead>(policies).momentum);
    if constexpr (Plan::leads) k.outer_take = real(1 - get<kind::lookahead>(policies).momentum);
  }
  return k;
}

}  // namespace descent::detail
