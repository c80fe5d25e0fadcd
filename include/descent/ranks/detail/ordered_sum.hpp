// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace descent::detail {

/// to[i] <- part(0)[i] + part(1)[i] + ..., in this order, in float or double, rounded once. `to` may alias a part.
template <class T, class Part> void add_in_order(T* to, std::int64_t n, int parts, Part const& part) {
  using real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  for (std::int64_t i = 0; i < n; ++i) {
    real sum = widen<real>(part(0)[i]);
    for (int r = 1; r < parts; ++r) sum += widen<real>(part(r)[i]);
    to[i] = narrow<T>(sum);
  }
}

/// The name of a type in messages.
template <class T> constexpr char const* name_of() {
  static_assert(storage_type<T> || std::is_same_v<T, std::byte>, "communicators transfer storage types and std::byte");
  if constexpr (std::is_same_v<T, std::byte>) return "bytes";
  else return type_name<T>();
}

}  // namespace descent::detail
