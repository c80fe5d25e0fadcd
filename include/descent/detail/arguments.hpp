// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/policy.hpp>
#include <descent/rule.hpp>

namespace descent::detail {

/// The sentences for arguments that do not make an optimizer.
template <class Rule, class... Ps> constexpr void require_arguments() {
  static_assert(has_state<Rule>,
                "an update rule needs 'template <class Real> struct state', whose members are all of type Real");
  static_assert(has_terms<Rule>,
                "an update rule needs 'template <class Real> struct terms', whose members are all of type Real, and "
                "'terms<double> at(std::int64_t t) const'");
  static_assert(has_update<Rule>,
                "an update rule needs 'template <class Real> static Real update(Real p, Real g, state<Real>& s, "
                "terms<Real> const& k)'");
  static_assert((policy<Ps> && ...),
                "an argument after the rule is not a policy: a policy names its kind, 'using policy_kind = ...'");
  static_assert(((!policy<Ps> || count_of<typename kind_of<Ps>::type, Ps...> == 1) && ...),
                "two policies of one kind: each kind of policy may be given at most once");
}

template <class Rule, class... Ps>
inline constexpr bool makes_optimizer =
    update_rule<Rule> && (policy<Ps> && ...) && ((count_of<typename kind_of<Ps>::type, Ps...> == 1) && ...);

/// The policy of type P among the arguments, or a default one.
template <class P> constexpr P policy_value() { return P{}; }
template <class P, class First, class... Rest> constexpr P policy_value(First const& first, Rest const&... rest) {
  if constexpr (std::is_same_v<P, First>) return first;
  else return policy_value<P>(rest...);
}

}  // namespace descent::detail
