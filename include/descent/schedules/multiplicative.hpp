// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

/// The first N values from a table, and the last one from then on: for what only a recurrence gives.
template <std::size_t N> struct table {
  static_assert(N >= 1 && N <= 256, "table<N>: 1 to 256 values: it is a parameter of kernels");
  double values[N] = {};

  DESCENT_HD double operator()(std::int64_t t) const {
    return values[t < 0 ? 0 : t < std::int64_t(N) ? t : std::int64_t(N) - 1];
  }

  void check() const {
    detail::require_all_finite("table", "values", values);
  }
};
static_assert(schedule<table<2>>);

/// PyTorch's MultiplicativeLR for N steps: factor(t) is what step t > 0 multiplies the value before by.
///
///     s(0) = initial,  s(t) = s(t - 1) factor(t)
template <std::size_t N, class Factor> table<N> multiplicative(double initial, Factor const& factor) {
  table<N> s{{initial}};
  for (std::size_t t = 1; t < N; ++t) s.values[t] = s.values[t - 1] * double(factor(std::int64_t(t)));
  return s;
}

}  // namespace descent
