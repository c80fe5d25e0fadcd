// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>

/// Marks what runs on host and device; nothing to a host compiler.
#if defined(__CUDACC__)
#define DESCENT_HD __host__ __device__
#else
#define DESCENT_HD
#endif

/// Before a DESCENT_HD template that calls its argument, on the side where that lives.
#if defined(__CUDACC__)
#define DESCENT_CALLS _Pragma("nv_exec_check_disable")
#else
#define DESCENT_CALLS
#endif

/// The functions that a rule may use, for float and double. detail/step/pack.hpp has them for SIMD packs under the same
/// names, so an unqualified call (in a user's namespace after `using descent::sqrt;`) suits every number type.
namespace descent {

using std::abs;
using std::sqrt;

/// A choice without a branch: `condition ? a : b`, lane by lane for packs.
DESCENT_HD inline float select(bool condition, float a, float b) { return condition ? a : b; }
DESCENT_HD inline double select(bool condition, double a, double b) { return condition ? a : b; }

/// Whether x is neither infinite nor not a number, and whether it is not a number. By its bits: -ffinite-math-only, a
/// part of -ffast-math and -Ofast, lets a compiler drop or invert comparisons that only such numbers can fail. Ask
/// before x is compared with anything: behind x == 0 it takes x for 0.
DESCENT_HD constexpr bool is_finite(float const& x) {
  return (__builtin_bit_cast(std::uint32_t, x) & 0x7f800000u) != 0x7f800000u;
}
DESCENT_HD constexpr bool is_finite(double const& x) {
  return (__builtin_bit_cast(std::uint64_t, x) & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}
DESCENT_HD constexpr bool is_nan(float const& x) {
  return (__builtin_bit_cast(std::uint32_t, x) & 0x7fffffffu) > 0x7f800000u;
}
DESCENT_HD constexpr bool is_nan(double const& x) {
  return (__builtin_bit_cast(std::uint64_t, x) & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

/// The larger and the smaller one; b where either is not a number, if the compiler's flags leave it that.
template <class Real> DESCENT_HD Real max(Real const& a, Real const& b) { return select(a > b, a, b); }
template <class Real> DESCENT_HD Real min(Real const& a, Real const& b) { return select(a < b, a, b); }

/// -1, 0 or 1; 0 where x is not a number, likewise.
template <class Real> DESCENT_HD Real sign(Real const& x) {
  return select(x > Real(0), Real(1), select(x < Real(0), Real(-1), Real(0)));
}

/// The cube root of a normal x > 0 to 2 ulp: three or four steps of Newton from a guess at the exponent, the same
/// bits on every host and device. Anything else is returned as it is, so 0 for 0.
DESCENT_HD inline float cbrt(float x) {
  float y = __builtin_bit_cast(float, __builtin_bit_cast(std::int32_t, x) / 3 + 0x2a5119f2);
  for (int i = 0; i < 3; ++i) y = y - (y - x / (y * y)) * (1 / 3.f);
  return x > 0 && is_finite(x) ? y : x;
}
DESCENT_HD inline double cbrt(double x) {
  double y = __builtin_bit_cast(double, __builtin_bit_cast(std::int64_t, x) / 3 + 0x2a9f789300000000);
  for (int i = 0; i < 4; ++i) y = y - (y - x / (y * y)) * (1 / 3.);
  return x > 0 && is_finite(x) ? y : x;
}

/// x^y, by the mathematical library of host or device: the last bits are theirs. On the host, powers 1/2 and 1/4 of
/// floats above 0 are square roots, to 0.75 units in the last place, since packs have them.
DESCENT_HD inline float pow(float x, float y) {
#if !defined(__CUDA_ARCH__)
  if (x > 0 && y == 0.5f) return sqrt(x);
  if (x > 0 && y == 0.25f) return sqrt(sqrt(x));
#endif
  return ::powf(x, y);
}
DESCENT_HD inline double pow(double x, double y) { return ::pow(x, y); }

/// x^n for n >= 0, 1 for others, by squaring: the same bits on every host and device, which pow() does not promise. The
/// relative error stays below n * 2^-53, of which 1 - beta^n keeps only what matters: beta^n is gone before n grows
/// large.
DESCENT_HD inline double power(double x, std::int64_t n) {
  double result = 1;
  for (; n > 0; n >>= 1, x *= x)
    if (n & 1) result *= x;
  return result;
}

/// The same for x > 0 to an error of 2^-53 + n 2^-102, with products in two parts (Dekker 1971): for schedules, where n
/// counts steps and x is close to 1. Exactly rounded operations alone, none of which a compiler may contract: the same
/// bits everywhere.
DESCENT_HD inline double precise_power(double x, std::int64_t n) {
  double result = 1, low = 0, square = x, square_low = 0;
  if (n < 0) return 1;
  for (;;) {
    if (n & 1) {
      double const product = ::fma(result, square, 0.0);
      double const rest = ::fma(result, square, -product) + ::fma(result, square_low, ::fma(low, square, 0.0));
      if (!is_finite(product)) return product;
      result = product + rest;
      low = rest - (result - product);
    }
    if ((n >>= 1) == 0) return result;
    double const product = ::fma(square, square, 0.0);
    double const rest = ::fma(square, square, -product) + ::fma(2 * square, square_low, 0.0);
    bool const finite = is_finite(product);
    square = finite ? product + rest : product;
    square_low = finite ? rest - (square - product) : 0;
  }
}

}  // namespace descent
