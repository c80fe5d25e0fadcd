// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace descent::detail {

/// A number as printf writes it, but with a decimal point in every locale.
inline std::string printed(char const* format, double x) {
  char text[40];
  std::snprintf(text, sizeof text, format, x);
  std::string all;
  for (char const* c = text; *c; ++c) {
    bool const usual = *c == '+' || *c == '-' || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z');
    if (usual) all += *c;
    else if (all.empty() || all.back() != '.') all += '.';  // the separator may have several bytes
  }
  return all;
}
/// A number as text for messages: %g, or all digits of an integer.
template <class T> std::string number(T x) {
  if constexpr (std::is_integral_v<T>) return std::to_string(x);
  else return printed("%g", double(x));
}
/// The same for a refused number: all digits if %g rounds it to a whole one, which may be allowed.
template <class T> std::string refused_number(T x) {
  std::string const text = number(x);
  if constexpr (std::is_floating_point_v<T>)
    if (text.find_first_of(".en") == text.npos && T(std::int64_t(x)) != x) return printed("%.17g", double(x));
  return text;
}

template <class T> [[noreturn]] void refuse(char const* rule, char const* field, char const* allowed, T x) {
  throw std::invalid_argument(std::string(rule) + ": " + field + " must be " + allowed + ", is " + refused_number(x));
}
/// is_nan() that also accepts an integer.
template <class T> constexpr bool is_no_number([[maybe_unused]] T const& x) {
  if constexpr (std::is_floating_point_v<T>) return is_nan(x);
  else return false;
}
/// Throws "rule: field must be allowed, is x" unless `holds`. Always throws if x is NaN, whatever a comparison with it
/// says: -ffinite-math-only lets x >= 0 be computed as !(x < 0).
template <class T> constexpr void require(bool holds, char const* rule, char const* field, char const* allowed, T x) {
  if (is_no_number(x) || !holds) refuse(rule, field, allowed, x);
}
/// The same for entry i of a field that is a list.
template <class T>
void require_entry(bool holds, char const* rule, char const* field, std::size_t i, char const* allowed, T x) {
  if (is_no_number(x) || !holds) refuse(rule, (field + ('[' + std::to_string(i) + ']')).c_str(), allowed, x);
}
/// Throws "rule: field must be at least other, is x", with the value of `other`, unless x >= least.
template <class T> void require_least(char const* rule, char const* field, char const* other, T least, T x) {
  if (is_no_number(x) || !(x >= least))
    refuse(rule, field, (std::string("at least ") + other + ", " + number(least)).c_str(), x);
}

inline void require_fraction(char const* rule, char const* field, double x) {
  require(x >= 0 && x < 1, rule, field, "in [0, 1)", x);
}
inline void require_nonnegative(char const* rule, char const* field, double x) {
  require(x >= 0 && is_finite(x), rule, field, "finite and at least 0", x);
}
inline void require_finite(char const* rule, char const* field, double x) {
  require(is_finite(x), rule, field, "finite", x);
}

/// Throws "rule: field must be allowed, is on" (or off) unless `holds`; for a flag that would have no effect.
inline void require_flag(bool holds, char const* rule, char const* field, char const* allowed, bool x) {
  if (!holds)
    throw std::invalid_argument(std::string(rule) + ": " + field + " must be " + allowed + ", is " +
                                (x ? "on" : "off"));
}

}  // namespace descent::detail
