// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

/// Storage types as values, with their own rounding, which shares nothing with the library's conversions.
namespace test {

struct format {
  std::string name;
  int digits, min_exponent, max_exponent;
  double (*get)(void const*, std::size_t);

  bool operator==(format const& o) const { return digits == o.digits; }
};

template <class T> double get(void const* p, std::size_t i) {
  return descent::widen<double>(static_cast<T const*>(p)[i]);
}
template <class T> format make_format() {
  if constexpr (std::is_same_v<T, double>) return {"double", 53, -1022, 1023, get<T>};
  else if constexpr (std::is_same_v<T, float>) return {"float", 24, -126, 127, get<T>};
  else if constexpr (std::is_same_v<T, descent::half>) return {"half", 11, -14, 15, get<T>};
  else return {"bfloat16", 8, -126, 127, get<T>};
}
template <class T> inline format const format_of = make_format<T>();

/// The distance between neighbours at x.
inline double ulp(format const& f, double x) {
  int const exponent = x == 0 ? f.min_exponent : std::max(std::ilogb(x), f.min_exponent);
  return std::ldexp(1, exponent - f.digits + 1);
}

/// Rounds to nearest, ties to even.
inline double rounded(format const& f, double x) {
  if (f.digits == 53 || !std::isfinite(x)) return x;
  double const r = std::nearbyint(x / ulp(f, x)) * ulp(f, x),
               most = std::ldexp(2 - std::ldexp(2, -f.digits), f.max_exponent);
  return std::abs(r) > most ? std::copysign(std::numeric_limits<double>::infinity(), x) : r;
}

/// The distance between a and b in ulp of the largest of a, b and `at`.
inline double ulps(format const& f, double a, double b, double at = 0) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  double const largest = std::max({std::abs(a), std::abs(b), std::abs(at)});
  double const distance = std::abs(a - b) / ulp(f, largest);
  return distance >= 0 && std::isfinite(largest) ? distance : std::numeric_limits<double>::infinity();
}

/// Whether the bits are the same; any two NaNs count as the same.
template <class T> bool same(T const& a, T const& b) {
  double const x = descent::widen<double>(a), y = descent::widen<double>(b);
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (std::isnan(x) && std::isnan(y));
}

}  // namespace test
