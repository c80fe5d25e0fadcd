// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

/// The fields of any aggregate, in order, for comparisons between ranks.
namespace descent::detail {

/// Stands for a field of any type, but not for a base class.
template <class Whole> struct any_field {
  template <class T> requires(!std::is_base_of_v<T, Whole>) operator T() const;
};
template <class Whole> struct any_base {
  template <class T> requires(std::is_base_of_v<T, Whole> && !std::is_same_v<T, Whole>) operator T() const;
};

template <class Whole, std::size_t> using numbered_field = any_field<Whole>;
template <class T, std::size_t... I> constexpr bool takes_fields(std::index_sequence<I...>) {
  return requires { T{numbered_field<T, I>{}...}; };
}
/// The same with braces around each field, so that an array counts as one field.
template <class T, std::size_t... I> constexpr bool takes_braced_fields(std::index_sequence<I...>) {
  return requires { T{{numbered_field<T, I>{}}...}; };
}

inline constexpr std::size_t most_fields = 20;

/// The largest number of fields, up to N, that can initialize T.
template <class T, std::size_t N> constexpr std::size_t count_taken() {
  if constexpr (N == 0 || takes_fields<T>(std::make_index_sequence<N>{})) return N;
  else return count_taken<T, N - 1>();
}
/// The number of fields; most_fields + 1 if it cannot be found: private fields, bases, arrays, too many fields.
template <class T> constexpr std::size_t count_fields() {
  constexpr std::size_t unknown = most_fields + 1;
  if constexpr (!std::is_aggregate_v<T> || std::is_array_v<T>) return unknown;
  else if constexpr (std::is_empty_v<T>) return 0;
  else if constexpr (requires { T{any_base<T>{}}; }) return unknown;
  else if constexpr (constexpr std::size_t n = count_taken<T, unknown>();
                     takes_braced_fields<T>(std::make_index_sequence<n>{})) return n;
  else return unknown;
}

/// The fields as a tuple of references.
template <std::size_t N, class T> constexpr auto tied(T const& x) {
  if constexpr (N == 0) return std::tuple<>();
  else if constexpr (N == 1) {
    auto const& [x0] = x;
    return std::tie(x0);
  } else if constexpr (N == 2) {
    auto const& [x0, x1] = x;
    return std::tie(x0, x1);
  } else if constexpr (N == 3) {
    auto const& [x0, x1, x2] = x;
    return std::tie(x0, x1, x2);
  } else if constexpr (N == 4) {
    auto const& [x0, x1, x2, x3] = x;
    return std::tie(x0, x1, x2, x3);
  } else if constexpr (N == 5) {
    auto const& [x0, x1, x2, x3, x4] = x;
    return std::tie(x0, x1, x2, x3, x4);
  } else if constexpr (N == 6) {
    auto const& [x0, x1, x2, x3, x4, x5] = x;
    return std::tie(x0, x1, x2, x3, x4, x5);
  } else if constexpr (N == 7) {
    auto const& [x0, x1, x2, x3, x4, x5, x6] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6);
  } else if constexpr (N == 8) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7);
  } else if constexpr (N == 9) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8);
  } else if constexpr (N == 10) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9);
  } else if constexpr (N == 11) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10);
  } else if constexpr (N == 12) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11);
  } else if constexpr (N == 13) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12);
  } else if constexpr (N == 14) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13);
  } else if constexpr (N == 15) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14);
  } else if constexpr (N == 16) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15);
  } else if constexpr (N == 17) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16);
  } else if constexpr (N == 18) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17);
  } else if constexpr (N == 19) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18);
  } else if constexpr (N == 20) {
    auto const& [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18, x19] = x;
    return std::tie(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18, x19);
  }
}

/// Calls f(number) for every number in x, also in aggregates, arrays and a chain's parts. Skips pointers, because each
/// rank has its own. Returns false, after f for some numbers, if x has a member that cannot be inspected.
template <class T, class F> bool each_number(T const& x, F const& f) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    f(x);
    return true;
  } else if constexpr (std::is_pointer_v<T> || std::is_member_pointer_v<T>) {
    return true;
  } else if constexpr (requires { x.each_part(f); }) {
    bool all = true;
    x.each_part([&](auto const& part) { all = each_number(part, f) && all; });
    return all;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return std::apply([&](auto const&... one) { return (each_number(one, f) && ... && true); }, x);
  } else if constexpr (count_fields<T>() <= most_fields) {
    return std::apply([&](auto const&... one) { return (each_number(one, f) && ... && true); },
                      tied<count_fields<T>()>(x));
  } else {
    return false;
  }
}

}  // namespace descent::detail
