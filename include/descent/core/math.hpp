// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cmath>
#include <cstdint>

/// Marks a function for host and device. Empty for a host compiler.
#if defined(__CUDACC__)
#define DESCENT_HD __host__ __device__
#else
#define DESCENT_HD
#endif

/// For a DESCENT_HD template that calls its argument: the argument may be callable on one side only.
#if defined(__CUDACC__)
#define DESCENT_CALLS _Pragma("nv_exec_check_disable")
#else
#define DESCENT_CALLS
#endif

/// The functions that a rule may use, for float and double. engine/step/simd_pack.hpp has them for SIMD packs under the
/// same names, so an unqualified call (in a user's namespace after `using descent::sqrt;`) works for every number type.
namespace descent {

/// The standard functions, for unqualified calls.
using std::abs;
using std::sqrt;

/// A branch-free choice: `condition ? a : b`, lane by lane for packs.
DESCENT_HD inline float select(bool condition, float a, float b) { return condition ? a : b; }
DESCENT_HD inline double select(bool condition, double a, double b) { return condition ? a : b; }

/// Whether x is neither infinite nor NaN, and whether x is NaN. They test the bits, because -ffinite-math-only (part of
/// -ffast-math and -Ofast) lets a compiler drop or invert comparisons that only fail for such numbers. Call them before
/// you compare x with anything: after a test x == 0, the compiler may take x for 0.
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

/// The larger and the smaller of two; b if either is NaN, unless the compiler's flags assume that there is no NaN.
template <class Real> DESCENT_HD Real max(Real const& a, Real const& b) { return select(a > b, a, b); }
template <class Real> DESCENT_HD Real min(Real const& a, Real const& b) { return select(a < b, a, b); }

/// -1, 0 or 1; 0 if x is NaN, under the same condition.
template <class Real> DESCENT_HD Real sign(Real const& x) {
  return select(x > Real(0), Real(1), select(x < Real(0), Real(-1), Real(0)));
}

/// The cube root of a normal x > 0, to 2 ulp, by three or four Newton steps from a guess based on the exponent. Gives
/// the same bits on every host and device. Returns any other x unchanged, so 0 for 0.
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

/// x^y from the math library of the host or device, so the last bits may differ. On the host, powers 1/2 and 1/4 of
/// floats above 0 are square roots, to 0.75 ulp, because packs have square roots.
DESCENT_HD inline float pow(float x, float y) {
#if !defined(__CUDA_ARCH__)
  if (x > 0 && y == 0.5f) return sqrt(x);
  if (x > 0 && y == 0.25f) return sqrt(sqrt(x));
#endif
  return ::powf(x, y);
}
DESCENT_HD inline double pow(double x, double y) { return ::pow(x, y); }

/// x^n by squaring for n >= 0, and 1 for n < 0. Unlike pow(), it gives the same bits on every host and device. The
/// relative error stays below n * 2^-53. This is small enough for 1 - beta^n, since beta^n vanishes before n grows
/// large.
DESCENT_HD inline double power(double x, std::int64_t n) {
  double result = 1;
  for (; n > 0; n >>= 1, x *= x)
    if (n & 1) result *= x;
  return result;
}

/// The same for x > 0 with an error of 2^-53 + n 2^-102, by products in two parts (Dekker 1971). For schedules, where n
/// counts steps and x is close to 1. Uses only exactly rounded operations that no compiler may contract, so the bits
/// are the same everywhere.
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
