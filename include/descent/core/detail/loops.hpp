// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <array>
#include <cstddef>

/// Loops whose length is known at compile time.
namespace descent::detail {

/// std::integral_constant that also works on devices.
template <std::size_t I> struct constant {
  DESCENT_HD constexpr operator std::size_t() const { return I; }
};

/// Calls f(First), ..., f(N - 1), each with a constant. Every compiler unrolls this loop, so what it indexes stays in
/// registers. One function for up to four calls: a pack of indices would need two.
DESCENT_CALLS
template <std::size_t N, std::size_t First = 0, class F> DESCENT_HD void unrolled([[maybe_unused]] F const& f) {
  if constexpr (First < N) f(constant<First>{});
  if constexpr (First + 1 < N) f(constant<First + 1>{});
  if constexpr (First + 2 < N) f(constant<First + 2>{});
  if constexpr (First + 3 < N) f(constant<First + 3>{});
  if constexpr (First + 4 < N) unrolled<N, First + 4>(f);
}

/// How many of the first `end` are true: std::count without <algorithm>, which is expensive to include.
template <std::size_t N> constexpr std::size_t count_true(std::array<bool, N> const& all, std::size_t end = N) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < end; ++i) n += all[i];
  return n;
}

}  // namespace descent::detail
