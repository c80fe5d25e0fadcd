// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

/// A policy is a value that switches one thing on, handed to the optimizer in any order, each kind at most once. It
/// names its kind: `using policy_kind = kind::clip;`. Policies of one kind exclude each other.
namespace descent {

namespace kind {
struct backend;
struct parallel;
struct master;
struct states;
struct finiteness;
struct loss_scale;
struct accumulation;
struct clip;
struct clip_value;
struct noise;
struct rounding;
struct average;
struct lookahead;
struct zero_grad;
struct maximize;
struct ascent;
struct loss;
struct rows;
struct matrices;
struct plateau;
template <auto Field> struct field;         // one kind for each scheduled field of the rule
template <auto Field> struct scaled_field;  // and for each that is multiplied
}  // namespace kind

template <class P>
concept policy = std::is_object_v<P> && requires { typename P::policy_kind; };

namespace detail {

template <class P> struct kind_of { using type = void; };
template <policy P> struct kind_of<P> { using type = typename P::policy_kind; };

template <class Kind, class... Ps>
inline constexpr std::size_t count_of = (std::size_t{0} + ... + std::is_same_v<Kind, typename kind_of<Ps>::type>);

template <class Kind, class Default, class... Ps> struct find { using type = Default; };
template <class Kind, class Default, class P, class... Ps> struct find<Kind, Default, P, Ps...> {
  using type = std::conditional_t<std::is_same_v<Kind, typename kind_of<P>::type>, P,
                                  typename find<Kind, Default, Ps...>::type>;
};
/// The policy of a kind among Ps, or Default.
template <class Kind, class Default, class... Ps> using policy_of = typename find<Kind, Default, Ps...>::type;

/// The policies as one value, also in device code: each is a base.
template <class... Ps> struct policy_set : Ps... {
  DESCENT_CALLS
  template <class F> DESCENT_HD void each([[maybe_unused]] F const& f) const {
    (f(static_cast<Ps const&>(*this)), ...);
  }
};

/// Several policies as one argument of the optimizer. One that is also given by itself takes the bundle's place.
template <class... Ps> struct policy_bundle : Ps... {
  using bundle = policy_bundle;

 private:
  using policy_kind = void;  // not a policy itself, also when its only base is one
};

template <class... Ps> struct policy_list {
  /// Those of Ps whose kind none of Qs has.
  template <class... Qs> static auto without(policy_list<Qs...>) {
    return (policy_list<>{} + ... +
            std::conditional_t<count_of<typename kind_of<Ps>::type, Qs...> == 0, policy_list<Ps>, policy_list<>>{});
  }
};
template <class... Ps, class... Qs> policy_list<Ps..., Qs...> operator+(policy_list<Ps...>, policy_list<Qs...>);

template <class P> concept policy_bundled = requires { typename P::bundle; };
template <class P> struct parts_of {
  template <class Others> static policy_list<P> list(Others);
};
template <policy_bundled P> struct parts_of<P> {
  template <class... Ps> static policy_list<Ps...> parts(policy_bundle<Ps...> const&);
  template <class Others> static auto list(Others others) {
    return decltype(parts(std::declval<typename P::bundle>()))::without(others);
  }
};
/// All policies among Ps, those in bundles too.
template <class... Ps> using flat_list = decltype((policy_list<>{} + ... + parts_of<Ps>::list(policy_list<Ps...>{})));

/// The argument of type P, or else the bundle that has it.
template <class P, class First, class... Rest> P const& policy_in(First const& first, Rest const&... rest) {
  constexpr bool here = std::is_same_v<P, First>, later = (std::is_same_v<P, Rest> || ...);
  if constexpr (here || (!later && std::is_base_of_v<P, First>)) return first;
  else return policy_in<P>(rest...);
}

}  // namespace detail
}  // namespace descent
