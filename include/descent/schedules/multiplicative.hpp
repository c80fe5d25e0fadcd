// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// A table of the first N values; the last one holds from then on. For values that only a recurrence defines.
template <std::size_t N> struct table {
  static_assert(N >= 1 && N <= 256, "table<N>: N must be 1 to 256: kernels take it by value");
  /// Finite.
  double values[N] = {};

  DESCENT_HD double operator()(std::int64_t t) const {
    return values[t < 0 ? 0 : t < std::int64_t(N) ? t : std::int64_t(N) - 1];
  }

  void check() const { detail::require_all_finite("table", "values", values); }
};
static_assert(schedule<table<2>>);

/// PyTorch's MultiplicativeLR for N steps: step t > 0 multiplies the value before it by factor(t).
///
///     s(0) = initial,  s(t) = s(t - 1) factor(t)
template <std::size_t N, class Factor> table<N> multiplicative(double initial, Factor const& factor) {
  table<N> s{{initial}};
  for (std::size_t t = 1; t < N; ++t) s.values[t] = s.values[t - 1] * double(factor(std::int64_t(t)));
  return s;
}

}  // namespace descent
