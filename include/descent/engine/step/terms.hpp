// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/control_block.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// What an update uses, on host and device: the terms of each group or tensor, and whether they are finite in the type
/// of the arithmetic.
namespace descent::detail {

/// Unrolls a loop on a device, so that its indices do not force arrays into local memory.
#if defined(__CUDA_ARCH__)
#define DESCENT_UNROLL _Pragma("unroll")
#else
#define DESCENT_UNROLL
#endif

/// NaN, whatever the compiler assumes of numbers.
template <class Real> DESCENT_HD Real not_a_number() {
  if constexpr (sizeof(Real) == 4) return __builtin_bit_cast(Real, 0x7fc00000);
  else return __builtin_bit_cast(Real, 0x7ff8000000000000);
}

/// What the update of a group or tensor reads. Update: the rule, with policies around it if there are any.
template <class Update, class Real> struct alignas(16) unit_terms {
  typename Update::template terms<Real> terms;
  Real factor;  // of each gradient
  bool frozen;
};

/// Converts terms<double> to terms<Real>.
template <class Update, class Real, class Terms>
DESCENT_HD unit_terms<Update, Real> narrowed(Terms const& k, double factor, bool frozen) {
  unit_terms<Update, Real> u{{}, Real(factor), frozen};
  constexpr int n = int(members<Update::template terms>);
  for (int i = 0; i < n; ++i) real_at<Real>(u.terms, i) = Real(real_at<double>(k, i));
  return u;
}

/// The terms for the update of a group or tensor, from r, its rule at that step. One is NaN if a schedule has moved a
/// field out of its range, so that the step is skipped.
template <class Update, class Real, class Policies, class Rule, class Terms>
DESCENT_HD unit_terms<Update, Real> checked(Rule const& r, Terms const& k, double factor, bool frozen) {
  auto u = narrowed<Update, Real>(k, factor, frozen);
  if constexpr (follows_steps<Policies> && members<Update::template terms> > 0)
    if (stray_field<Real, Rule, Policies>(r) >= 0) real_at<Real>(u.terms, 0) = not_a_number<Real>();
  return u;
}

/// The first term that is not finite (NaN, for terms that may be infinite); the number of terms if there is none.
template <class Update, class Real> DESCENT_HD int bad_term(unit_terms<Update, Real> const& x) {
  constexpr int n = int(members<Update::template terms>);
  int first = n;
  DESCENT_UNROLL
  for (int i = n - 1; i >= 0; --i) {
    Real const& k = real_at<Real>(x.terms, i);
    if (may_be_infinite<Update>(std::size_t(i)) ? is_nan(k) : !is_finite(k)) first = i;
  }
  return first;
}
/// Whether a unit's terms can be used.
template <class Update, class Real> DESCENT_HD bool is_sound(unit_terms<Update, Real> const& x) {
  return x.frozen || (is_finite(x.factor) && bad_term(x) == int(members<Update::template terms>));
}
template <class P, class Real> DESCENT_HD bool is_sound_stage([[maybe_unused]] stage_terms<P, Real> const& k) {
  if constexpr (members<P::template terms> > 0)
    for (std::size_t i = 0; i < members<P::template terms>; ++i) {
      Real const& term = real_at<Real>(k.terms, i);
      if (may_be_infinite<P>(i) ? is_nan(term) : !is_finite(term)) return false;
    }
  return true;
}
template <class Real, class... Stages> DESCENT_HD bool is_sound(step_terms<Real, Stages...> const& k) {
  return (is_sound_stage<Stages, Real>(k) && ... && true);
}
DESCENT_HD inline bool is_sound(no_step_terms const&) { return true; }

/// Whether no element contributes to a unit's sums or is updated with its terms: a tensor without elements or without
/// selected rows, or one that the matrix rule updates. Such terms may be 0 / 0.
template <class Plan>
DESCENT_HD bool is_idle(bool has_elements, [[maybe_unused]] double const* totals,
                        [[maybe_unused]] std::int64_t stride) {
  if (!has_elements) return true;
  if constexpr (Plan::selects_rows && Plan::sums) {
    for (int i = 0; i < int(Plan::sum_count); ++i)
      if (totals[i * stride] != 0) return false;
    return true;
  }
  return false;
}

/// The field of a rule, scheduled for this step, that is out of its range; none if all are in theirs.
template <class Real, class Policies, class Rule>
DESCENT_HD term_fault stray_field_of([[maybe_unused]] Rule const& r, [[maybe_unused]] std::int64_t group,
                                     [[maybe_unused]] term_fault::place what) {
  term_fault fault;
  if (std::int32_t const stray = stray_field<Real, Rule, Policies>(r); stray >= 0)
    each_scheduled_field<Rule>(std::type_identity<Policies>{}, [&](auto field, std::int32_t number) {
      if (number == stray) fault = {what, number, group, field.of(r)};
    });
  return fault;
}

/// What is wrong with a unit that is not sound. `scheduled` is its rule at that step.
template <class Update, class Real, class Rule>
DESCENT_HD term_fault fault_of(unit_terms<Update, Real> const& x, [[maybe_unused]] Rule const& scheduled,
                               std::int64_t unit, term_fault::place what = term_fault::term) {
  if constexpr (has_lr<Rule>)
    if (what != term_fault::matrices && !is_finite(Real(scheduled.lr))) return {what, -1, unit, scheduled.lr};
  constexpr int n = int(members<Update::template terms>);
  int const first = bad_term(x);
  term_fault fault{term_fault::factor, 0, unit, double(x.factor)};
  DESCENT_UNROLL
  for (int i = 0; i < n; ++i)
    if (i == first) fault = {what, i, unit, double(real_at<Real>(x.terms, i))};
  return fault;
}

struct no_memory {};
template <class Rule> struct memory_type { using type = no_memory; };
template <has_memory Rule> struct memory_type<Rule> { using type = typename Rule::memory; };
template <class Rule> using memory_of = typename memory_type<Rule>::type;

template <class Plan> using unit_terms_of = unit_terms<typename Plan::update, typename Plan::real>;

/// at() of a rule whose scheduled fields are set, and of the policies around it. Facts, as the rule's at() takes them:
/// totals, memory, loss. If the totals are a policy's, the rule gets none.
template <class Plan, class... Facts>
DESCENT_HD auto terms_at(typename Plan::rule const& r, [[maybe_unused]] typename Plan::policies const& policies,
                         std::int64_t t, Facts&&... facts) {
  using rule = typename Plan::rule;
  using update = typename Plan::update;
  if constexpr (std::is_same_v<update, rule>) {
    return r.at(t, facts...);
  } else {
    typename update::template terms<double> k{};
    constexpr bool of_policy = has_sums<update> && !has_sums<rule>;
    if constexpr (of_policy) k.template of<rule>() = r.at(t);
    else k.template of<rule>() = r.at(t, facts...);
    double lr = 0;
    if constexpr (has_lr<rule>) lr = r.lr;
    each_stage(typename Plan::stages_around{}, [&]<class P>() {
      auto const& stage = get<typename P::policy_kind>(policies);
      if constexpr (sizeof...(Facts) > 0 && names_sums_around<P>) k.template of<P>() = stage.at(t, lr, facts...);
      else k.template of<P>() = stage.at(t, lr);
    });
    return k;
  }
}
template <class Plan, class... Facts>
DESCENT_HD unit_terms_of<Plan> checked_terms_at(typename Plan::rule const& r, typename Plan::policies const& policies,
                                                bool frozen, std::int64_t t, Facts&&... facts) {
  return checked<typename Plan::update, typename Plan::real, typename Plan::policies>(
      r, terms_at<Plan>(r, policies, t, facts...), 1, frozen);
}

/// The terms of one unit in update t, for a rule without sums. The memory of a frozen unit does not change.
template <class Plan>
DESCENT_HD unit_terms_of<Plan> terms_of(group_entry<typename Plan::rule> const& group,
                                        typename Plan::policies const& policies, std::int64_t t,
                                        [[maybe_unused]] memory_of<typename Plan::rule>* memories,
                                        [[maybe_unused]] std::int64_t u, rate_change const& rate = {}) {
  using rule = typename Plan::rule;
  rule const r = scheduled(group.rule, policies, t - 1, group.number, rate);
  if constexpr (has_memory<rule>) {
    if (group.frozen) return {{}, 0, true};
    return checked_terms_at<Plan>(r, policies, false, t, memories[u]);
  } else {
    return checked_terms_at<Plan>(r, policies, group.frozen, t);
  }
}

/// The terms of a row after `updates` updates, including this one. The fields of `r` are already scheduled.
template <class Plan>
DESCENT_HD typename Plan::rule::template terms<typename Plan::real> terms_of_row(typename Plan::rule const& r,
                                                                                 std::int32_t updates) {
  return narrowed<typename Plan::rule, typename Plan::real>(r.at(updates), 1, false).terms;
}

/// The terms that the sums of a group, or of tensor u, need in update t.
template <class Plan>
DESCENT_HD unit_terms_of<Plan> terms_for_sums(group_entry<typename Plan::rule> const& group,
                                              typename Plan::policies const& policies, std::int64_t t,
                                              [[maybe_unused]] memory_of<typename Plan::rule>* memories,
                                              [[maybe_unused]] std::int64_t u, rate_change const& rate = {}) {
  using rule = typename Plan::rule;
  rule const r = scheduled(group.rule, policies, t - 1, group.number, rate);
  if constexpr (has_sums_of_memory<rule>) return checked_terms_at<Plan>(r, policies, group.frozen, t, memories[u]);
  else return checked_terms_at<Plan>(r, policies, group.frozen, t);
}

/// The terms of one unit in update t, from its sums.
template <class Plan>
DESCENT_HD unit_terms_of<Plan> terms_of(group_entry<typename Plan::rule> const& group,
                                        typename Plan::policies const& policies, std::int64_t t, double const* totals,
                                        std::int64_t stride, [[maybe_unused]] memory_of<typename Plan::rule>* memories,
                                        [[maybe_unused]] std::int64_t u, rate_change const& rate = {}) {
  using rule = typename Plan::rule;
  if (Plan::sums_per_tensor && group.frozen) return {{}, 0, true};
  typename Plan::update::template sums<double> sums;
  for (int i = 0; i < int(Plan::sum_count); ++i) real_at<double>(sums, i) = totals[i * stride];
  rule const r = scheduled(group.rule, policies, t - 1, group.number, rate);
  auto const at = [&](auto&&... facts) { return checked_terms_at<Plan>(r, policies, group.frozen, t, sums, facts...); };
  if constexpr (has_loss<rule>) {
    double const loss = loss_of<Plan>(policies);
    if constexpr (has_memory<rule>) return at(memories[u], loss);
    else return at(loss);
  } else {
    if constexpr (has_memory<rule>) return at(memories[u]);
    else return at();
  }
}

#undef DESCENT_UNROLL

}  // namespace descent::detail
