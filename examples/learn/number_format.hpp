// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

/// Number formats as bit fields, of any width: docs/learn/formats.md.
namespace example::learn {

/// The lowest n bits, highest first.
inline std::string binary(std::uint64_t bits, int n) {
  std::string text;
  while (n-- > 0) text += (bits >> n & 1) ? '1' : '0';
  return text;
}

/// A floating-point format: a sign, E bits of exponent, M bits of fraction.
///
///     normal     (-1)^s 2^(e - bias) (1 + m / 2^M)      0 < e
///     subnormal  (-1)^s 2^(1 - bias) (0 + m / 2^M)      e = 0
///
/// The largest e is infinity (m = 0) and NaN. Without infinity it is an exponent as any other, and all ones are NaN.
struct floating {
  int E, M;
  bool infinity = true;

  int width() const { return 1 + E + M; }
  int bias() const { return (1 << (E - 1)) - 1; }
  double least_normal() const { return std::ldexp(1, 1 - bias()); }
  double least() const { return std::ldexp(1, 1 - bias() - M); }
  double largest() const {
    return infinity ? std::ldexp(2 - std::ldexp(1, -M), bias()) : std::ldexp(2 - std::ldexp(2, -M), bias() + 1);
  }

  // snippet: round
  int exponent(double x) const { return std::max(std::ilogb(x), 1 - bias()); }
  double spacing(double x) const { return std::ldexp(1, exponent(x) - M); }

  double round(double x) const {
    double const y = std::nearbyint(x / spacing(x)) * spacing(x);  // ties to even
    return std::fabs(y) <= largest() ? y : std::copysign(infinity ? INFINITY : NAN, x);
  }
  // end

  /// The bits of x, which has this format.
  std::uint32_t code(double x) const {
    auto const sign = std::uint32_t(std::signbit(x)) << (E + M), all = (1u << (E + M)) - 1;
    if (!std::isfinite(x)) return sign | (std::isinf(x) ? all >> M << M : all);
    auto const e = std::uint32_t(exponent(x) + bias() - 1);
    return sign | ((e << M) + std::uint32_t(std::fabs(x) / spacing(x)));  // the 1 before the fraction adds 1 to e
  }
  std::string fields(double x) const {
    return binary(code(x) >> (E + M), 1) + " " + binary(code(x) >> M, E) + " " + binary(code(x), M);
  }
};

/// Fixed point, Q`whole`.`fraction`: an integer in two's complement, times a constant. Saturates.
struct fixed {
  int whole, fraction;

  int width() const { return whole + fraction; }
  double spacing(double = 0) const { return std::ldexp(1, -fraction); }
  double least() const { return spacing(); }
  double least_normal() const { return spacing(); }
  double largest() const { return std::ldexp(1, whole - 1) - spacing(); }
  double round(double x) const {
    return std::clamp(std::nearbyint(x / spacing()) * spacing(), -largest() - spacing(), largest());
  }
  std::string fields(double x) const {
    auto const bits = std::uint64_t(std::int64_t(x / spacing()));
    return binary(bits >> fraction, whole) + "." + binary(bits, fraction);
  }
};

// snippet: formats
constexpr floating binary32{8, 23}, tf32{8, 10}, brain16{8, 7}, binary16{5, 10}, e5m2{5, 2}, e4m3{4, 3, false};
constexpr fixed q8_8{8, 8};
// end

void for_each_format(auto const& f) {
  f("float", binary32), f("TF32", tf32), f("bfloat16", brain16), f("half", binary16);
  f("e5m2", e5m2), f("e4m3", e4m3), f("Q8.8", q8_8);
}

}  // namespace example::learn
