// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/plan.hpp>

#include <cstdint>

/// The control block: what changes from step to step and lives beside the data, in the memory of the backend. The
/// functions below are one state machine for host and device, all in double. They never touch a parameter.
///
///     decide:   skip? norm, clip factor, t <- t + 1
///     terms:    schedules -> rule -> what the update needs, for each group (or tensor, for sums over tensors)
namespace descent {

struct control_block {
  std::int64_t step = 0;     ///< t, the updates applied so far
  std::int64_t skipped = 0;  ///< steps that were skipped for a gradient that is not finite
  std::int64_t bad_chunk = -1;
  double grad_norm = 0;      ///< of the last call, before clipping; not a number where nothing measures it
  double clip = 1;
  double factor = 1;         ///< what every gradient is multiplied by
  double learning_rate = 0;  ///< of group 0, in the last applied update
  bool applied = false;      ///< whether the last call updated the parameters
};

/// A group's copy of the rule.
template <class Rule> struct group_entry {
  Rule rule;
  bool frozen = false;
};

namespace detail {

/// What the update of a group or tensor reads.
template <class Rule, class Real> struct alignas(16) unit {
  typename Rule::template terms<Real> terms;
  Real factor;  // of every gradient
  bool frozen;
};

/// The policies that have a factor for the gradient's norm, or 1.
template <class Policies> DESCENT_HD double clip_factor(Policies const& policies, double norm) {
  double factor = 1;
  policies.each([&](auto const& p) {
    if constexpr (requires { p.factor(norm); }) factor = p.factor(norm);
  });
  return factor;
}

/// The rule with its scheduled fields as they are at this step.
template <class Rule, class Policies>
DESCENT_HD Rule scheduled(Rule rule, Policies const& policies, std::int64_t step) {
  policies.each([&](auto const& p) {
    if constexpr (requires { p.schedule; }) p.apply(rule, step);
  });
  return rule;
}

/// The rule with its scheduled fields unknown: not a number.
template <class Rule, class Policy> void forget(Rule& rule, Policy const& policy) {
  if constexpr (requires { policy.schedule; }) policy.forget(rule);
}
template <class Rule, class... Ps>
Rule unscheduled(Rule rule, [[maybe_unused]] policy_set<Ps...> const& policies) {
  (forget(rule, static_cast<Ps const&>(policies)), ...);
  return rule;
}

/// Once per call of step, given the rule of group 0 and the sum of all squared gradients, which is not read when the
/// step measures none.
template <class Plan>
DESCENT_HD void decide(control_block& c, typename Plan::rule const& rule, typename Plan::policies const& policies,
                       double squares) {
  c.applied = true;
  if constexpr (Plan::measures) {
    c.grad_norm = descent::sqrt(squares);
    c.applied = squares - squares == 0;  // neither infinite nor not a number
  }
  if (!c.applied) {
    ++c.skipped;
    return;
  }
  c.bad_chunk = -1;
  c.clip = clip_factor(policies, c.grad_norm);
  c.factor = c.clip;
  if constexpr (has_lr<typename Plan::rule>) c.learning_rate = scheduled(rule, policies, c.step).lr;
  ++c.step;
}

/// terms<double> to terms<Real>.
template <class Rule, class Real, class Terms>
DESCENT_HD unit<Rule, Real> narrowed(Terms const& k, double factor, bool frozen) {
  unit<Rule, Real> u{{}, Real(factor), frozen};
  constexpr int n = int(members<Rule::template terms>);
  for (int i = 0; i < n; ++i)
    reinterpret_cast<Real*>(&u.terms)[i] = Real(reinterpret_cast<double const*>(&k)[i]);
  return u;
}

/// The terms of update t of one group, before any sum is known.
template <class Plan>
DESCENT_HD unit<typename Plan::rule, typename Plan::real> terms_of(group_entry<typename Plan::rule> const& group,
                                                                    typename Plan::policies const& policies,
                                                                    std::int64_t t, double factor) {
  using rule = typename Plan::rule;
  return narrowed<rule, typename Plan::real>(scheduled(group.rule, policies, t - 1).at(t), factor, group.frozen);
}

struct no_memory {};
template <class Rule> struct memory_type { using type = no_memory; };
template <has_memory Rule> struct memory_type<Rule> { using type = typename Rule::memory; };
template <class Rule> using memory_of = typename memory_type<Rule>::type;

/// The terms of update t of one group or tensor, from its sums.
template <class Plan>
DESCENT_HD unit<typename Plan::rule, typename Plan::real> terms_of(group_entry<typename Plan::rule> const& group,
                                                                    typename Plan::policies const& policies,
                                                                    std::int64_t t, double factor,
                                                                    double const* totals, std::int64_t stride,
                                                                    memory_of<typename Plan::rule>& memory) {
  using rule = typename Plan::rule;
  if (Plan::sums_per_tensor && group.frozen) return {{}, 0, true};
  typename rule::template sums<double> sums;
  for (int i = 0; i < int(Plan::sum_count); ++i) reinterpret_cast<double*>(&sums)[i] = totals[i * stride];
  rule const r = scheduled(group.rule, policies, t - 1);
  if constexpr (has_memory<rule>) return narrowed<rule, typename Plan::real>(r.at(t, sums, memory), factor, group.frozen);
  else return narrowed<rule, typename Plan::real>(r.at(t, sums), factor, group.frozen);
}

}  // namespace detail
}  // namespace descent
