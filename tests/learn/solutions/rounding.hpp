// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

inline std::uint16_t bfloat16_bits(float x) {
  auto const bits = std::bit_cast<std::uint32_t>(x);
  std::uint32_t const odd = bits >> 16 & 1;
  return std::uint16_t((bits + 0x7fff + odd) >> 16);
}
