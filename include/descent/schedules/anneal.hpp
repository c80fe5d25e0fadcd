// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

namespace descent {

/// The shape of a transition from one value to another.
enum class anneal { linear, cosine };

namespace detail {

/// (1 - cos(pi x)) / 2 = sin^2(pi x / 2) for 0 <= x <= 1/2, by the series of the sine up to y^17 / 17!. Accurate to 3
/// ulp, with the same bits on every host and device, which a library's cosine does not promise.
DESCENT_HD inline double haversine(double x) {
  double const y = x * 1.57079632679489661923, yy = y * y;
  double sum = 1;
  for (int k = 8; k > 0; --k) sum = 1 - sum * (yy * (1.0 / (2 * k * (2 * k + 1))));
  return (y * sum) * (y * sum);
}

/// (1 + cos(pi x)) / 2 for 0 <= x <= 1: exactly 1 at 0 and 0 at 1, and without cancellation near 1.
DESCENT_HD inline double cosine_fall(double x) { return x <= 0.5 ? 1 - haversine(x) : haversine(1 - x); }

/// The same for every x >= 0: it rises again after 1 and falls again after 2.
DESCENT_HD inline double cosine_wave(double x) {
  double const part = x - 2 * ::floor(x / 2);
  return cosine_fall(part <= 1 ? part : 2 - part);
}

/// From `from` at x = 0 to `to` at x = 1, both exactly.
DESCENT_HD inline double between(double from, double to, double x, anneal shape) {
  if (shape == anneal::linear) return x < 1 ? from + (to - from) * x : to;
  return x <= 0.5 ? from + (to - from) * haversine(x) : to + (from - to) * haversine(1 - x);
}

/// x^y for x >= 0. If y is an integer up to 64, it gives the same bits on every host and device.
DESCENT_HD inline double power_of(double x, double y) {
  return y >= 0 && y <= 64 && y == ::floor(y) ? descent::power(x, std::int64_t(y)) : descent::pow(x, y);
}

}  // namespace detail

}  // namespace descent
