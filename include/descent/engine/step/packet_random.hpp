// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/packet_io.hpp>
#include <descent/engine/step/plan.hpp>
#include <descent/core/detail/loops.hpp>
#include <descent/policies/rounding.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

/// The random numbers that a step needs to round one packet, and how they are made with SIMD.
namespace descent::detail {

/// The streams of random numbers for rounding: the value, the slow weights, and the first member of the state.
inline constexpr int random_value = 0, random_slow = 1, random_slot = 2;

#if !defined(__CUDA_ARCH__)
/// A round of philox() for two counters in eight lanes. c0 and c2 of each are multiplied in place; the words of the
/// products, in reverse order, become the next counter after xor with c1, c3 and the keys.
DESCENT_LANES inline void philox_round(words& c, words& k) {
  words const product = even_products(c, words{0xD2511F53, 0, 0xCD9E8D57, 0, 0xD2511F53, 0, 0xCD9E8D57, 0});
  c = __builtin_shufflevector(product, product, 3, 2, 1, 0, 7, 6, 5, 4) ^ (words)((unsigned_longs)c >> 32) ^ k;
  k += words{0x9E3779B9, 0, 0xBB67AE85, 0, 0x9E3779B9, 0, 0xBB67AE85, 0};
}

/// a <- random_bits() of stream_a, b <- random_bits() of stream_b.
DESCENT_LANES inline void random_bits_in_lanes(random_packet& a, random_packet& b, std::uint64_t seed,
                                               std::int64_t step, std::int64_t packet, int stream_a, int stream_b) {
  auto const low = std::uint32_t(step), high = std::uint32_t(step >> 32);
  auto const k0 = std::uint32_t(seed), k1 = std::uint32_t(seed >> 32);
  words k{k0, 0, k1, 0, k0, 0, k1, 0};
  words const begin{low, high | std::uint32_t(stream_a) << 24, 0, 0, low, high | std::uint32_t(stream_b) << 24, 0, 0};
  words c = begin | ((words)(longs{} + packet) & words{0, 0, ~0u, ~0u, 0, 0, ~0u, ~0u});
  philox_round(c, k), philox_round(c, k), philox_round(c, k), philox_round(c, k);
  philox_round(c, k), philox_round(c, k), philox_round(c, k);
  words const first = c & 0xffff, last = c >> 16;
  *reinterpret_cast<words*>(a.bits) = __builtin_shufflevector(first, last, 0, 1, 2, 3, 8, 9, 10, 11);
  *reinterpret_cast<words*>(b.bits) = __builtin_shufflevector(first, last, 4, 5, 6, 7, 12, 13, 14, 15);
}
#endif

/// The stream for the value beside a master, after those of the state.
template <class Plan> inline constexpr int random_beside = random_slot + int(Plan::slots);
/// Whether the value of such a tensor is rounded stochastically.
template <class Plan>
inline constexpr bool rounds_beside = Plan::rounds_beside && Plan::has_master && sizeof(typename Plan::value) == 2;

/// The streams of what the plan's step rounds stochastically: the value and its master, if With is true, and members of
/// the state.
template <class Plan, bool With> struct rounded_streams {
  template <std::size_t I>
  static constexpr bool slot = Plan::template updates<I> && Plan::template rounds<typename Plan::template slot<I>>;
  static constexpr auto all = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{With && !Plan::has_remainder && Plan::template rounds<typename Plan::master_or_value>, false,
                      slot<I>..., With && rounds_beside<Plan>};
  }(typename Plan::every_slot{});

  template <int Stream> static constexpr bool rounded = all[Stream];
  /// The number of rounded streams before a stream, and in all.
  template <int Stream> static constexpr int before = int(count_true(all, Stream));
  static constexpr int count = before<int(all.size())>;
  /// The rounded stream that follows `Before` others.
  template <int Before> static constexpr int number = [] {
    int stream = -1;
    for (int left = Before; left >= 0; left -= all[std::size_t(stream)]) ++stream;
    return stream;
  }();
};

}  // namespace descent::detail
