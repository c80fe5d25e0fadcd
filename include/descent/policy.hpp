// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/math.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

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
template <auto Field> struct field;  // one kind for each scheduled field of the rule
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
  template <class F> DESCENT_HD void each([[maybe_unused]] F const& f) const {
    (f(static_cast<Ps const&>(*this)), ...);
  }
};

}  // namespace detail
}  // namespace descent
