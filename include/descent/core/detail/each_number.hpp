// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/aggregate.hpp>

#include <tuple>
#include <type_traits>

/// The numbers in any aggregate, in order, for comparisons between ranks.
namespace descent::detail {

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
  } else if constexpr (std::is_array_v<T>) {
    bool all = true;
    for (auto const& one : x) all = each_number(one, f) && all;
    return all;
  } else if constexpr (has_known_fields<T>) {
    return with_members(x, [&](auto const&... one) { return (each_number(one, f) && ... && true); });
  } else {
    return false;
  }
}

}  // namespace descent::detail
