// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/plan.hpp>
#include <descent/engine/step/scheduled.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace descent::detail {

/// The terms of a policy's stage, if it has one.
template <class P, class Real> struct stage_terms_of { struct type {}; };
template <class P, class Real> requires requires { typename P::template terms<Real>; }
struct stage_terms_of<P, Real> { using type = typename P::template terms<Real>; };
template <class P, class Real> using stage_terms = typename stage_terms_of<P, Real>::type;
template <class P, class To, class From> DESCENT_HD stage_terms<P, To> converted(stage_terms<P, From> const& from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else {
    stage_terms<P, To> to{};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((real_at<To>(to, I) = To(real_at<From>(from, I))), ...);
    }(std::make_index_sequence<members<P::template terms>>());
    return to;
  }
}
/// A policy after the rule, or an average, that has what the update calls; void without a policy.
template <class P>
concept stage_after_rule = std::is_void_v<P> || requires(P const p, typename P::template kept<float> s,
                                                         typename P::template terms<float> k, float x) {
  { p.at(std::int64_t()) } -> std::same_as<typename P::template terms<double>>;
  { P::after(x, s, k) } -> std::same_as<float>;
  s.slow;
};
template <class P>
concept averaging_stage = std::is_void_v<P> || requires(P const p, typename P::template terms<float> k, float x) {
  { p.at(std::int64_t()) } -> std::same_as<typename P::template terms<double>>;
  { P::after(x, x, k) } -> std::same_as<float>;
};

/// Whether the stage does nothing with these terms, and reads nothing.
template <class P, class Terms> DESCENT_HD bool is_idle([[maybe_unused]] Terms const& k) {
  if constexpr (requires { P::idle(k); }) return P::idle(k);
  else return false;
}

/// What the update of an element needs for policies, in addition to the rule's terms.
template <class Real, class Average, class Lookahead> struct step_terms {
  Real limit, noise;  // of clip_value, gradient_noise
  [[no_unique_address]] stage_terms<Average, Real> average;
  [[no_unique_address]] stage_terms<Lookahead, Real> lookahead;
  std::int64_t t;
  std::uint64_t noise_seed, rounding_seed;
};
struct no_step_terms {};
template <class Plan>
using step_terms_of =
    std::conditional_t<Plan::has_step_terms,
                       step_terms<typename Plan::real, typename Plan::average, typename Plan::lookahead>,
                       no_step_terms>;

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
    if constexpr (has<Plan, kind::average>)
      k.average = converted<typename Plan::average, real, double>(get<kind::average>(policies).at(t));
    if constexpr (has<Plan, kind::lookahead>) {
      auto const& slow = get<kind::lookahead>(policies);
      auto terms = slow.at(t);
      if constexpr (Plan::leads && has_lr<typename Plan::rule>)
        if (terms.pull != 0 && slow.follows_lr) terms.pull *= slow.part(scheduled(rule, policies, t, 0, rates).lr);
      k.lookahead = converted<typename Plan::lookahead, real, double>(terms);
    }
  }
  return k;
}

}  // namespace descent::detail
