// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

/// A policy is a value that switches one feature on. The optimizer takes policies in any order, at most one of a kind.
/// A policy names its kind: `using policy_kind = kind::clip;`. Policies of the same kind exclude each other.
namespace descent {

/// The kinds of policies: tags, only declared.
namespace kind {
struct backend;
struct memory;
struct parallel;
struct model;
struct master;
struct states;
struct state_memory;
struct finiteness;
struct loss_scale;
struct accumulation;
struct gradient_factor;
struct clip;
struct clip_value;
struct noise;
struct rounding;
struct average;
struct lookahead;
struct zero_grad;
struct maximize;
struct perturbation;
struct loss;
struct rows;
struct matrices;
struct plateau;
struct profiler;
template <auto Field> struct field;         // one kind for each scheduled field of the rule
template <auto Field> struct scaled_field;  // and one for each scaled field
template <class P> struct around;           // one for each policy around the update, P itself
}  // namespace kind

namespace detail {
/// Whether an engine knows this kind.
template <class Kind, class... Known> inline constexpr bool is_one_of = (std::is_same_v<Kind, Known> || ...);
template <class Kind>
inline constexpr bool is_known_kind =
    is_one_of<Kind, kind::backend, kind::memory, kind::parallel, kind::model, kind::master, kind::states,
              kind::state_memory, kind::finiteness, kind::loss_scale, kind::accumulation, kind::gradient_factor,
              kind::clip, kind::clip_value, kind::noise, kind::rounding, kind::average, kind::lookahead,
              kind::zero_grad, kind::maximize, kind::perturbation, kind::loss, kind::rows, kind::matrices,
              kind::plateau, kind::profiler>;
template <auto Field> inline constexpr bool is_known_kind<kind::field<Field>> = true;
template <auto Field> inline constexpr bool is_known_kind<kind::scaled_field<Field>> = true;
template <class P> inline constexpr bool is_known_kind<kind::around<P>> = true;
template <class Kind> inline constexpr bool is_kind_around = false;
template <class P> inline constexpr bool is_kind_around<kind::around<P>> = true;
}  // namespace detail

/// A policy: an object type with a policy_kind.
template <class P> concept policy = std::is_object_v<P> && requires { typename P::policy_kind; };

namespace detail {

template <class P> struct kind_of { using type = void; };
template <policy P> struct kind_of<P> { using type = typename P::policy_kind; };

template <class Kind, class... Ps>
inline constexpr std::size_t count_of = (std::size_t{0} + ... + std::is_same_v<Kind, typename kind_of<Ps>::type>);

template <class Kind, class Default, class... Ps> struct find { using type = Default; };
template <class Kind, class Default, class P, class... Ps> struct find<Kind, Default, P, Ps...> {
  using type =
      std::conditional_t<std::is_same_v<Kind, typename kind_of<P>::type>, P, typename find<Kind, Default, Ps...>::type>;
};
/// The policy of the given kind among Ps, or Default.
template <class Kind, class Default, class... Ps> using policy_of = typename find<Kind, Default, Ps...>::type;

/// All policies as one value that can also be used in device code. Each is a base class.
template <class... Ps> struct policy_set : Ps... {
  DESCENT_CALLS
  template <class F> DESCENT_HD void each([[maybe_unused]] F const& f) const {
    (f(static_cast<Ps const&>(*this)), ...);
  }
};
/// The policy of a kind in a set that has one.
template <class Kind, class... Ps> DESCENT_HD auto& get(policy_set<Ps...>& set) {
  return static_cast<policy_of<Kind, void, Ps...>&>(set);
}
template <class Kind, class... Ps> DESCENT_HD auto const& get(policy_set<Ps...> const& set) {
  return static_cast<policy_of<Kind, void, Ps...> const&>(set);
}

/// Several policies as one argument of the optimizer. A policy given separately replaces the bundle's.
template <class... Ps> struct policy_bundle : Ps... {
  using bundle = policy_bundle;

 private:
  using policy_kind = void;  // a bundle is not a policy, even if its only base is one
};

template <class... Ps> struct policy_list {
  /// The policies of Ps whose kind does not occur in Qs.
  template <class... Qs> static auto without(policy_list<Qs...>) {
    return (policy_list<>{} + ... +
            std::conditional_t<count_of<typename kind_of<Ps>::type, Qs...> == 0, policy_list<Ps>, policy_list<>>{});
  }
};
template <class... Ps, class... Qs> policy_list<Ps..., Qs...> operator+(policy_list<Ps...>, policy_list<Qs...>);

template <class P> concept policy_bundled = requires { typename P::bundle; };
template <class P> struct parts_of { template <class Others> static policy_list<P> list(Others); };
template <policy_bundled P> struct parts_of<P> {
  template <class... Ps> static policy_list<Ps...> parts(policy_bundle<Ps...> const&);
  template <class Others> static auto list(Others others) {
    return decltype(parts(std::declval<typename P::bundle>()))::without(others);
  }
};
/// All policies among Ps, including those in bundles.
template <class... Ps> using flat_list = decltype((policy_list<>{} + ... + parts_of<Ps>::list(policy_list<Ps...>{})));

/// The argument of type P, or else the bundle that contains it.
template <class P, class First, class... Rest> P const& policy_in(First const& first, Rest const&... rest) {
  constexpr bool here = std::is_same_v<P, First>, later = (std::is_same_v<P, Rest> || ...);
  if constexpr (here || (!later && std::is_base_of_v<P, First>)) return first;
  else return policy_in<P>(rest...);
}

}  // namespace detail
}  // namespace descent
