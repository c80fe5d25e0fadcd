// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/rule.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Policies around the update: a rule and the policies that change its update are one rule for the engine.
namespace descent::detail {

/// The terms of one stage, a policy's or the rule's.
template <class P, class Real> struct stage_terms { [[no_unique_address]] typename P::template terms<Real> terms; };

/// Calls f.operator()<P>() for each policy of a list.
DESCENT_CALLS
template <class F, class... Stages> DESCENT_HD void each_stage(policy_list<Stages...>, [[maybe_unused]] F const& f) {
  (f.template operator()<Stages>(), ...);
}

template <class P> inline constexpr bool is_around = false;
template <class P> requires requires { typename P::policy_kind; }
inline constexpr bool is_around<P> = std::is_same_v<typename P::policy_kind, kind::around<P>>;

/// What the engine calls in a policy around the update.
template <class P>
concept stage_around_rule =
    struct_of_reals<P::template terms> && requires(P const p, typename P::template terms<float> k, float x) {
      { p.at(std::int64_t(), 1.0) } -> std::same_as<typename P::template terms<double>>;
      { P::around(x, x, x, k) } -> std::same_as<float>;
    };
template <class P> concept names_sums_around = requires { typename P::template sums<double>; };
template <class P>
concept sums_around_rule =
    names_sums_around<P> && struct_of_reals<P::template sums> &&
    requires(P const p, typename P::template sums<double> const& total, typename P::template terms<float> k, float x) {
      { P::sums_over } -> std::convertible_to<scope>;
      requires P::sums_over != scope::group;
      { P::sum(x, x, x, k) } -> std::same_as<typename P::template sums<float>>;
      { p.at(std::int64_t(), 1.0, total) } -> std::same_as<typename P::template terms<double>>;
    };

/// The terms of several stages, side by side.
template <class Real, class... Stages> struct all_terms : stage_terms<Stages, Real>... {
  template <class P> DESCENT_HD auto& of() { return static_cast<stage_terms<P, Real>&>(*this).terms; }
  template <class P> DESCENT_HD auto const& of() const { return static_cast<stage_terms<P, Real> const&>(*this).terms; }
};

/// The parameter after the rule and these policies. s, the rule's state, changes.
template <class Rule, class... Stages, class Real, class State, class Terms, class... Normal>
DESCENT_HD Real updated_by(Real p, Real g, State& s, Terms const& k, Normal... z) {
  Real next = Rule::update(p, g, s, k.template of<Rule>(), z...);
  ((next = Stages::around(p, g, next, k.template of<Stages>())), ...);
  return next;
}

/// The sums of the one policy that has some; the policies before it have changed the update that it sums up.
template <class Rule, class Before, class... Stages> struct sums_of_policy {};
template <class Rule, class... Before, class P, class... Stages>
struct sums_of_policy<Rule, policy_list<Before...>, P, Stages...>
    : sums_of_policy<Rule, policy_list<Before..., P>, Stages...> {};
template <class Rule, class... Before, names_sums_around P, class... Stages>
struct sums_of_policy<Rule, policy_list<Before...>, P, Stages...> {
  template <class Real> using sums = typename P::template sums<Real>;
  static constexpr scope sums_over = P::sums_over;
  template <class Real, class Terms>
  DESCENT_HD static sums<Real> sum(Real p, Real g, typename Rule::template state<Real> s, Terms const& k) {
    return P::sum(p, g, updated_by<Rule, Before...>(p, g, s, k), k.template of<P>());
  }
};
/// The sums of the rule.
template <class Rule> struct sums_of_rule {
  template <class Real> using sums = typename Rule::template sums<Real>;
  static constexpr scope sums_over = Rule::sums_over;
  template <class Real, class Terms> DESCENT_HD static sums<Real> sum(Real p, Real g, Terms const& k)
      requires(!has_sums_of_state<Rule>) {
    return Rule::sum(p, g, k.template of<Rule>());
  }
  template <class Real, class Terms>
  DESCENT_HD static sums<Real> sum(Real p, Real g, typename Rule::template state<Real> const& s, Terms const& k)
      requires has_sums_of_state<Rule> {
    return Rule::sum(p, g, s, k.template of<Rule>());
  }
};

/// What the engine updates with: the rule's state, and the terms of the rule, then of the policies around it.
template <class Rule, class... Stages>
struct rule_around
    : std::conditional_t<has_sums<Rule>, sums_of_rule<Rule>, sums_of_policy<Rule, policy_list<>, Stages...>> {
  template <class Real> using state = typename Rule::template state<Real>;
  template <class Real> struct terms : all_terms<Real, Rule, Stages...> {};
  static_assert(members<terms> == members<Rule::template terms> + (members<Stages::template terms> + ...));

  template <class Real, class... Normal>
  DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k, Normal... z) {
    return updated_by<Rule, Stages...>(p, g, s, k, z...);
  }
  DESCENT_HD static constexpr bool unbounded(std::size_t term) {
    std::size_t first = 0;  // the first term of a part
    auto const is_in = [&]<class P>(std::type_identity<P>) {
      std::size_t const i = term - first;
      first += members<P::template terms>;
      return term < first && may_be_infinite<P>(i);
    };
    return is_in(std::type_identity<Rule>{}) || (is_in(std::type_identity<Stages>{}) || ...);
  }
};
template <class Rule, class List> struct update_type;
template <class Rule> struct update_type<Rule, policy_list<>> { using type = Rule; };
template <class Rule, class P, class... Ps> struct update_type<Rule, policy_list<P, Ps...>> {
  using type = rule_around<Rule, P, Ps...>;
};

}  // namespace descent::detail
