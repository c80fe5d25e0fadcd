// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cstddef>
#include <utility>

namespace descent::detail {

/// std::integral_constant that also works on devices.
template <std::size_t I> struct constant {
  DESCENT_HD constexpr operator std::size_t() const { return I; }
};

DESCENT_CALLS
template <class F, std::size_t... I> DESCENT_HD void call_each(F const& f, std::index_sequence<I...>) {
  (f(constant<I>{}), ...);
}

/// Calls f(0), ..., f(N - 1), each with a constant. Every compiler unrolls this loop, so what it indexes stays in
/// registers.
DESCENT_CALLS
template <std::size_t N, class F> DESCENT_HD void unrolled(F const& f) { call_each(f, std::make_index_sequence<N>{}); }

}  // namespace descent::detail
