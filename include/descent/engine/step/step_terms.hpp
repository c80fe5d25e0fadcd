// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/plan.hpp>
#include <descent/engine/step/scheduled.hpp>
#include <descent/core/transform.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace descent::detail {

template <class P, class To, class From>
DESCENT_HD typename P::template terms<To> converted(typename P::template terms<From> const& from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else {
    typename P::template terms<To> to{};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((real_at<To>(to, I) = To(real_at<From>(from, I))), ...);
    }(std::make_index_sequence<members<P::template terms>>());
    return to;
  }
}
/// A policy before the rule is a gradient transform without a state.
template <class P> concept stage_before_rule = std::is_void_v<P> || (gradient_transform<P> && !has_state<P>);
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
template <class Real, class... Stages> struct step_terms : all_terms<Real, Stages...> {
  std::int64_t t;
  std::uint64_t noise_seed, rounding_seed;

  /// The terms of a stage, converted to another type.
  template <class P, class To> DESCENT_HD auto as() const { return converted<P, To, Real>(this->template of<P>()); }
};
struct no_step_terms {};
template <class Real, class... Stages> step_terms<Real, Stages...> step_terms_for(policy_list<Stages...>);
template <class Plan, bool = Plan::has_step_terms> struct step_terms_type { using type = no_step_terms; };
template <class Plan> struct step_terms_type<Plan, true> {
  using type = decltype(step_terms_for<typename Plan::real>(typename Plan::stages{}));
};
template <class Plan> using step_terms_of = typename step_terms_type<Plan>::type;

/// The terms of one stage in update t. Where the values lead, lookahead's follow the learning rate.
template <class Plan, class P>
DESCENT_HD auto stage_terms_at(P const& stage, [[maybe_unused]] typename Plan::rule const& rule,
                               [[maybe_unused]] typename Plan::policies const& policies, std::int64_t t,
                               [[maybe_unused]] rate_change const& rates) {
  auto terms = stage.at(t);
  if constexpr (std::is_same_v<P, typename Plan::lookahead> && Plan::leads && has_lr<typename Plan::rule>)
    if (terms.pull != 0 && stage.follows_lr) terms.pull *= stage.part(scheduled(rule, policies, t, 0, rates).lr);
  return terms;
}

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
    each_stage(typename Plan::stages{}, [&]<class P>() {
      auto const& stage = get<typename P::policy_kind>(policies);
      k.template of<P>() = converted<P, real, double>(stage_terms_at<Plan>(stage, rule, policies, t, rates));
    });
    if constexpr (has<Plan, kind::noise>) k.noise_seed = get<kind::noise>(policies).seed;
    if constexpr (takes_normal<typename Plan::rule>) k.noise_seed = rule.seed;
    if constexpr (has<Plan, kind::rounding>) k.rounding_seed = get<kind::rounding>(policies).seed;
  }
  return k;
}

}  // namespace descent::detail
