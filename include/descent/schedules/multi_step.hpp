// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// A staircase with stairs of any length: multiplied by `factor` at each of the N steps in `at`. They must not
/// decrease; a step that is listed twice counts twice.
///
///     s(t) = initial factor^k,  k = the number of entries of at that are <= t
template <std::size_t N> struct multi_step {
  static_assert(N >= 1 && N <= 256, "multi_step<N>: N must be 1 to 256: kernels take it by value");
  /// A finite initial value, which must be given; factor above 0; steps of at least 1, not decreasing.
  double initial = detail::not_given, factor = 0.1;
  std::int64_t at[N] = {};

  DESCENT_HD double operator()(std::int64_t t) const {
    std::int64_t passed = 0;
    for (std::size_t i = 0; i < N; ++i) passed += at[i] <= t;
    return detail::decayed(initial, factor, passed);
  }

  void check() const {
    detail::require_given("multi_step", "initial", initial);
    detail::require_positive("multi_step", "factor", factor);
    detail::require_order("multi_step", "at", at, false);
  }
};
static_assert(schedule<multi_step<2>>);

}  // namespace descent
