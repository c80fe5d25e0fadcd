// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

/// Storage types, and conversions between them and the type of the arithmetic, which is float or double. Every
/// conversion rounds once, to nearest, ties to even.
namespace descent {

/// The 16-bit types of CUDA: IEEE half precision, and bfloat16 with the range of float.
using half = __half;
using bfloat16 = __nv_bfloat16;

/// The types in which values, gradients and states can be stored.
template <class T>
concept storage_type =
    std::is_same_v<T, double> || std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

/// The type in which the counts in a rule's state are stored; see has_counts. No storage type for anything else.
template <class T> concept count_type = std::is_same_v<T, std::uint32_t>;

/// The name of such a type, or of the low halves of masters, for messages.
template <class T> constexpr char const* type_name() {
  if constexpr (std::is_same_v<T, double>) return "double";
  else if constexpr (std::is_same_v<T, float>) return "float";
  else if constexpr (std::is_same_v<T, half>) return "half";
  else if constexpr (count_type<T>) return "uint32";
  else if constexpr (std::is_same_v<T, std::uint16_t>) return "uint16";
  else return "bfloat16";
}

/// The largest finite number of a storage type.
template <storage_type T>
inline constexpr double largest_finite = std::is_same_v<T, half>       ? 65504
                                         : std::is_same_v<T, bfloat16> ? 0x1.fep127
                                         : std::is_same_v<T, float>    ? 0x1.fffffep127
                                                                       : 0x1.fffffffffffffp1023;

/// The distance from 1 to the next number of a storage type.
template <storage_type T>
inline constexpr double machine_epsilon = std::is_same_v<T, half>       ? 0x1p-10
                                          : std::is_same_v<T, bfloat16> ? 0x1p-7
                                          : std::is_same_v<T, float>    ? 0x1p-23
                                                                        : 0x1p-52;

/// Converts to the type of the arithmetic. Exact, except from double to float and for counts above 2^24 in float.
template <class Real, class T> requires(storage_type<T> || count_type<T>) DESCENT_HD Real widen(T x) {
  if constexpr (std::is_same_v<T, half>) return Real(__half2float(x));
  else if constexpr (std::is_same_v<T, bfloat16>) return Real(__bfloat162float(x));
  else return Real(x);
}

/// Converts to a storage type, or to a count: then a fraction is cut off, and numbers beyond the range become its end.
template <class T, class Real> requires(storage_type<T> || count_type<T>) DESCENT_HD T narrow(Real x) {
  if constexpr (std::is_same_v<T, half> && std::is_same_v<Real, double>) return __double2half(x);
  else if constexpr (std::is_same_v<T, half>) return __float2half_rn(x);
  else if constexpr (std::is_same_v<T, bfloat16> && std::is_same_v<Real, double>) return __double2bfloat16(x);
  else if constexpr (std::is_same_v<T, bfloat16>) return __float2bfloat16_rn(x);
  else if constexpr (count_type<T>) return x > 0 ? (x < Real(0x1p32f) ? T(x) : ~T(0)) : T(0);
  else return T(x);
}

}  // namespace descent
