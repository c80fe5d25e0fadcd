// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>
#include <descent/core/precision.hpp>
#include <descent/core/detail/floating_point_mode.hpp>
#include <descent/core/tensor_info.hpp>
#include <descent/optimizer/detail/run_part.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

/// What a piece takes if a file has it in another floating-point type, or has only the value that it follows.
namespace descent::detail {

/// Converts elements of one floating-point type to another one, rounding to nearest whatever the mode of the thread.
/// Numbers beyond its range become its largest one of their sign. Returns how many; infinities and NaN stay what they
/// are.
template <class To> std::int64_t convert_elements(dtype from, std::span<std::byte const> bytes, std::byte* to) {
  floating_point_scope const to_nearest;
  std::int64_t saturated = 0;
  auto const all = [&]<class From>(From x) {
    for (std::size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
      std::memcpy(&x, bytes.data() + i * sizeof(From), sizeof(From));
      double const wide = widen<double>(x);
      To y = narrow<To>(wide);
      if (is_finite(wide) && !is_finite(widen<double>(y))) {
        y = narrow<To>(wide < 0 ? -largest_finite<To> : largest_finite<To>);
        ++saturated;
      }
      std::memcpy(to + i * sizeof(To), &y, sizeof(To));
    }
  };
  if (from == dtype::f64) all(double());
  else if (from == dtype::f32) all(float());
  else if (from == dtype::f16) all(half());
  else all(bfloat16());
  return saturated;
}
inline std::int64_t convert_elements(dtype from, std::span<std::byte const> bytes, dtype type, std::byte* to) {
  if (type == dtype::f64) return convert_elements<double>(from, bytes, to);
  if (type == dtype::f32) return convert_elements<float>(from, bytes, to);
  if (type == dtype::f16) return convert_elements<half>(from, bytes, to);
  return convert_elements<bfloat16>(from, bytes, to);
}
inline bool is_floating(dtype t) { return t == dtype::f64 || t == dtype::f32 || t == dtype::f16 || t == dtype::bf16; }

/// The name of the parameter of which this piece is a copy, or the bits that its value lacks; else empty.
inline std::string value_followed_by(std::string const& piece) {
  auto const dot = std::min(piece.rfind('.'), piece.size());
  std::string const last = piece.substr(dot);
  return last == ".master" || last == ".slow" || last == ".remainder" ? piece.substr(0, dot) : "";
}
/// Fills such a piece, which a file does not have, from the value that is loaded.
inline void fill_from_value(run_piece const& value, std::span<std::byte const> loaded, run_piece const& piece,
                            std::byte* to) {
  std::size_t const size = descent::bytes_of(value.type);
  if (piece.type == dtype::u16) std::memset(to, 0, piece.bytes());
  else convert_elements(value.type, loaded.subspan(std::size_t(piece.begin - value.begin) * size,
                                                   std::size_t(piece.count) * size), piece.type, to);
}

}  // namespace descent::detail
