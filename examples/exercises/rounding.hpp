// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 18: rounding to bfloat16.
//
// A bfloat16 is the upper 16 bits of a float. Return the bits of the bfloat16 that is nearest to x. If two are equally
// near, return the one whose last bit is 0. x is not NaN.
//
//     bits of a float:  sign 1, exponent 8, fraction 23          of a bfloat16:  sign 1, exponent 8, fraction 7
//
// Hint: std::bit_cast<std::uint32_t>(x) has the bits. Adding a little less than half of the last kept bit rounds; at a
// tie it must be half for odd numbers. A carry into the exponent is right: it is the next power of two.
#pragma once

#include <bit>
#include <cstdint>

inline std::uint16_t bfloat16_bits(float x) {
  return 0;  // your lines
}
