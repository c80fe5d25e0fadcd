// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>
#include <descent/schedules/anneal.hpp>

namespace descent {

/// A constant for each interval: values[0] before step at[0], values[i] from at[i - 1] on, values[N] from at[N - 1] on.
template <std::size_t N> struct piecewise_constant {
  static_assert(N >= 1 && N <= 128, "piecewise_constant<N>: N must be 1 to 128: kernels take it by value");
  /// Steps above 0, increasing, and finite values.
  std::int64_t at[N] = {};
  double values[N + 1] = {};

  DESCENT_HD double operator()(std::int64_t t) const {
    std::size_t passed = 0;
    for (std::size_t i = 0; i < N; ++i) passed += at[i] <= t;
    return values[passed];
  }

  void check() const {
    detail::require_order("piecewise_constant", "at", at, true);
    detail::require_all_finite("piecewise_constant", "values", values);
  }
};
static_assert(schedule<piecewise_constant<2>>);

/// Interpolates the points (0, values[0]), (at[0], values[1]), ..., (at[N - 1], values[N]) by lines or half cosine
/// waves. Constant from the last point on.
template <std::size_t N> struct piecewise_interpolated {
  static_assert(N >= 1 && N <= 128, "piecewise_interpolated<N>: N must be 1 to 128: kernels take it by value");
  /// Steps above 0, increasing, and finite values.
  std::int64_t at[N] = {};
  double values[N + 1] = {};
  anneal shape = anneal::linear;

  DESCENT_HD double operator()(std::int64_t t) const {
    std::size_t passed = 0;
    for (std::size_t i = 0; i < N; ++i) passed += at[i] <= t;
    if (passed == N) return values[N];
    std::int64_t const from = passed == 0 ? 0 : at[passed - 1];
    return detail::between(values[passed], values[passed + 1], double(t - from) / double(at[passed] - from), shape);
  }

  void check() const {
    detail::require_order("piecewise_interpolated", "at", at, true);
    detail::require_all_finite("piecewise_interpolated", "values", values);
  }
};
static_assert(schedule<piecewise_interpolated<2>>);

}  // namespace descent
