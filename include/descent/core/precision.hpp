// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

/// Storage types and the conversions between them and the type of the arithmetic, float or double. Every conversion
/// rounds once, to nearest, ties to even.
namespace descent {

using half = __half;
using bfloat16 = __nv_bfloat16;

template <class T>
concept storage_type = std::is_same_v<T, double> || std::is_same_v<T, float> || std::is_same_v<T, half> ||
                       std::is_same_v<T, bfloat16>;

template <class T> constexpr char const* type_name() {
  if constexpr (std::is_same_v<T, double>) return "double";
  else if constexpr (std::is_same_v<T, float>) return "float";
  else if constexpr (std::is_same_v<T, half>) return "half";
  else return "bfloat16";
}

/// Exact, except from double to float.
template <class Real, storage_type T> DESCENT_HD Real widen(T x) {
  if constexpr (std::is_same_v<T, half>) return Real(__half2float(x));
  else if constexpr (std::is_same_v<T, bfloat16>) return Real(__bfloat162float(x));
  else return Real(x);
}

template <storage_type T, class Real> DESCENT_HD T narrow(Real x) {
  if constexpr (std::is_same_v<T, half> && std::is_same_v<Real, double>) return __double2half(x);
  else if constexpr (std::is_same_v<T, half>) return __float2half_rn(x);
  else if constexpr (std::is_same_v<T, bfloat16> && std::is_same_v<Real, double>) return __double2bfloat16(x);
  else if constexpr (std::is_same_v<T, bfloat16>) return __float2bfloat16_rn(x);
  else return T(x);
}

}  // namespace descent
