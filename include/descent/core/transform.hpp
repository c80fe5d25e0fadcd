// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

/// Gradient transforms: parts of a chain in front of its rule, which change the gradient of each element. A transform
/// has hyperparameters of type double and, like a rule, structs over Real. It never changes the parameter: only a rule
/// does.
namespace descent {

namespace detail {

/// The transform's state for one element; empty by default.
template <class Real> struct no_state {};
template <class T> struct state_of_transform { template <class Real> using type = no_state<Real>; };
template <has_state T> struct state_of_transform<T> {
  template <class Real> using type = typename T::template state<Real>;
};
template <class T> inline constexpr std::size_t transform_slots = members<state_of_transform<T>::template type>;

template <class T, class Real>
concept applies = requires(Real x, typename T::template terms<Real> const& k) {
  { T::apply(x, x, k) } -> std::same_as<Real>;
};
template <class T, class Real>
concept applies_with_state =
    has_state<T> && requires(Real x, typename T::template state<Real>& s, typename T::template terms<Real> const& k) {
      { T::apply(x, x, s, k) } -> std::same_as<Real>;
    };
template <class T, class Real>
concept applies_with_normal = requires(Real x, typename T::template terms<Real> const& k) {
  { T::apply(x, x, k, x) } -> std::same_as<Real>;
};

}  // namespace detail

/// Normals: `apply(p, g, k, z)` gets a standard normal z, drawn with the field `std::uint64_t seed`.
template <class T>
concept transform_takes_normal =
    detail::applies_with_normal<T, float> && detail::applies_with_normal<T, double> && requires(T const r) {
      { (r.seed) } -> std::same_as<std::uint64_t const&>;
    };

/// Sums, as in a rule: `sum(p, g, k)` with k = at(t), `sums_over`, and `at(t, totals)`.
template <class T>
concept transform_has_sums =
    has_sums<T> && !has_sums_of_state<T> && requires(T const r, typename T::template sums<double> const& totals) {
      { r.at(std::int64_t(1), totals) } -> std::same_as<typename T::template terms<double>>;
    };

/// `apply` computes the new gradient from parameter p (before the update), gradient g and terms k = at(t):
/// `apply(p, g, k)`, or `apply(p, g, s, k)` with a state, which starts at 0.
template <class T>
concept gradient_transform =
    std::is_trivially_copyable_v<T> && detail::struct_of_reals<T::template terms> && detail::terms_at_step<T> &&
    ((detail::applies<T, float> && detail::applies<T, double>) ||
     (detail::applies_with_state<T, float> && detail::applies_with_state<T, double>) || transform_takes_normal<T>);

}  // namespace descent
