// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/precision.hpp>
#include <descent/detail/util/philox.hpp>

#include <cstdint>
#include <type_traits>

/// Stochastic rounding of what a step stores in 16 bits.
namespace descent {

/// Rounds values that are stored as half or bfloat16 up or down at random, so that each is right on average (Gupta et
/// al. 2015, section 3): updates far below half a unit in the last place still add up, without a master copy.
///
///     x -> the neighbour above with probability (x - below) / (above - below), else the one below
///
/// The random numbers depend on seed, step and element alone, never on launch geometry, devices or ranks.
struct stochastic_rounding {
  std::uint64_t seed = 0;

  using policy_kind = kind::rounding;
};

namespace detail {

struct random_packet {
  alignas(32) std::uint32_t bits[8];  // each in [0, 65536)
};

/// Random numbers for the 8 elements of a packet (element / 8) at a step, from one call of philox, whose rounds are a
/// part of the instructions of a step. A value that is rounded and each member of its state have a stream of their own,
/// below 240.
DESCENT_HD inline random_packet random_bits(std::uint64_t seed, std::int64_t step, std::int64_t packet, int stream) {
  random_words const random = random_at<7>(seed, step, packet, stream);
  random_packet r;
  for (int i = 0; i < 4; ++i) {
    r.bits[i] = random.word[i] & 0xffff;
    r.bits[i + 4] = random.word[i] >> 16;
  }
  return r;
}

/// x rounded to one of its neighbours in T, half or bfloat16, by `random`, uniform in [0, 65536): away from zero with
/// a probability of the dropped fraction, exact for bfloat16 and half's normal numbers, to 2^-16 among half's
/// subnormal ones. What T represents stays as it is, zeros with their sign. Beyond the largest finite T, x rounds to
/// nearest: to that number or to infinity. Not a number stays that.
template <class T> DESCENT_HD T narrow_stochastic(float x, std::uint32_t random) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, "stochastic rounding is to half or bfloat16");
  std::uint32_t const bits = __builtin_bit_cast(std::uint32_t, x);
  std::int32_t const magnitude = std::int32_t(bits & 0x7fffffff);  // signed comparisons are the cheap ones in SIMD
  std::int32_t rounded;
  if constexpr (std::is_same_v<T, bfloat16>) {
    std::uint32_t const kept = magnitude < 0x7f7f0000 ? random : 0x8000;
    rounded = std::int32_t((std::uint32_t(magnitude) + kept) >> 16);
  } else {
    // |x| = below + rest, of which below, at most 2^-14, has the fixed point of half's subnormal numbers.
    std::int32_t const below = magnitude < 0x38800000 ? magnitude : 0x38800000;
    std::int32_t const fixed = std::int32_t(__builtin_bit_cast(float, below) * 0x1p40f);
    std::int32_t const kept = magnitude < 0x477fe000 ? std::int32_t(random) : 0x8000;
    rounded = (((fixed + kept) >> 3) + (magnitude - below)) >> 13;
    rounded = rounded < 0x7c00 ? rounded : 0x7c00;
  }
  rounded = magnitude > 0x7f800000 ? 0x7fff : rounded;
  return __builtin_bit_cast(T, std::uint16_t(std::uint32_t(rounded) | (bits >> 16 & 0x8000)));
}

}  // namespace detail
}  // namespace descent
