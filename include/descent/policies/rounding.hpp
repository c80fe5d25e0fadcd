// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/policy.hpp>
#include <descent/core/precision.hpp>
#include <descent/core/detail/philox.hpp>

#include <cstdint>
#include <type_traits>

/// Stochastic rounding of the values and states that a step stores in 16 bits.
namespace descent {

/// Rounds values stored as half or bfloat16 up or down at random, so that each is correct on average (Gupta et al.
/// 2015, section 3). Updates far below half a unit in the last place then still add up, without a master copy.
///
///     x -> the neighbour above with probability (x - below) / (above - below), else the one below
///
/// A value that has a master or a remainder is not rounded: it stays the master rounded to nearest.
/// The random numbers depend only on seed, step and element, never on launch geometry, devices or ranks.
struct stochastic_rounding {
  std::uint64_t seed = 0;  ///< of the random numbers

  using policy_kind = kind::rounding;
};

/// The same, and also for values beside a master: the value is the master rounded at random, not to nearest. The master
/// has the bits that it has without this policy. Needs a 16-bit value beside a master<M>.
struct stochastic_values {
  std::uint64_t seed = 0;  ///< of the random numbers

  using policy_kind = kind::rounding;
  static constexpr bool beside_master = true;  ///< values beside a master are rounded, too
};

namespace detail {

struct random_packet {
  alignas(32) std::uint32_t bits[8];  // each in [0, 65536)
};

/// Random numbers for the 8 elements of a packet (element / 8) at a step, from one philox call. It has only 7 rounds,
/// because they take a noticeable part of a step's instructions. Each rounded value and each member of its state has
/// its own stream, below 240.
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
/// the probability of the dropped fraction. That is exact for bfloat16 and for half's normal numbers, and accurate to
/// 2^-16 for half's subnormal numbers. Numbers that T represents are unchanged, including the sign of zero. Beyond the
/// largest finite T, x rounds to nearest: to that number or to infinity. NaN stays NaN.
template <class T> DESCENT_HD T narrow_stochastic(float x, std::uint32_t random) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, "stochastic rounding needs half or bfloat16");
  std::uint32_t const bits = __builtin_bit_cast(std::uint32_t, x);
  std::int32_t const magnitude = std::int32_t(bits & 0x7fffffff);  // signed: cheaper to compare in SIMD
  std::int32_t rounded;
  if constexpr (std::is_same_v<T, bfloat16>) {
    std::uint32_t const kept = magnitude < 0x7f7f0000 ? random : 0x8000;
    rounded = std::int32_t((std::uint32_t(magnitude) + kept) >> 16);
  } else {
    // |x| = below + rest. below is at most 2^-14 and uses the fixed point of half's subnormal numbers.
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
