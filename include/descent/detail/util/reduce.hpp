// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cstdint>

/// The order in which partial sums are added, the same on host and device whatever the number of threads or blocks.
/// A chunk is summed by `chunk_threads` lanes, packet q by lane q mod chunk_threads; the chunks' sums by
/// `total_threads` lanes, chunk c by lane c mod total_threads; a tensor's by one warp. Lanes are then added neighbours
/// first within a warp, then warps in order. These are the host's versions; block_reduce.cuh has the device's.
namespace descent::detail {

inline constexpr int chunk_threads = 256, total_threads = 512, warp = 32;

/// The larger one of two that are +0 or above; not a number if either is, whose bits are the largest of all. Signed, as
/// SIMD compares.
DESCENT_HD inline double larger(double a, double b) {
  return __builtin_bit_cast(std::int64_t, a) > __builtin_bit_cast(std::int64_t, b) ? a : b;
}

/// How two partial results of one row become one: the first row of an infinity norm keeps the larger, all others add.
template <bool Largest> struct combine {
  DESCENT_HD double operator()(double a, double b) const {
    if constexpr (Largest) return larger(a, b);
    else return a + b;
  }
};

/// One of the four accumulators of a lane.
template <bool Largest = false> DESCENT_HD double fold(double const (&a)[4]) {
  combine<Largest> const both;
  return both(both(a[0], a[2]), both(a[1], a[3]));
}

/// Of four neighbours.
template <bool Largest = false>
DESCENT_HD double fold_four(double const (&a)[4], double const (&b)[4], double const (&c)[4], double const (&d)[4]) {
  combine<Largest> const both;
  return both(both(fold<Largest>(a), fold<Largest>(b)), both(fold<Largest>(c), fold<Largest>(d)));
}

/// Neighbours first: after each round half as many are left. Where they are sums of neighbours already, a warp has
/// fewer.
template <bool Largest = false> double add_block(double* lane, int lanes, int warp_size = warp) {
  int const warps = lanes / warp_size;
  for (int left = lanes / 2; left >= warps; left /= 2)
    for (int i = 0; i < left; ++i) lane[i] = combine<Largest>{}(lane[2 * i], lane[2 * i + 1]);
  double sum = lane[0];
  for (int i = 1; i < warps; ++i) sum = combine<Largest>{}(sum, lane[i]);
  return sum;
}

/// Combines count values by Lanes lanes; value(i) is one of them.
template <int Lanes, bool Largest = false, class Value> double add_strided(Value const& value, std::int64_t count) {
  double lane[Lanes] = {};
  for (std::int64_t i = 0; i < count; ++i) lane[i % Lanes] = combine<Largest>{}(lane[i % Lanes], value(i));
  return add_block<Largest>(lane, Lanes);
}

// Squares of doubles overflow: those above a threshold are added apart, made smaller; no sum of the rest overflows.
inline constexpr double large_threshold = 0x1p480, large_scale = 0x1p-600;

}  // namespace descent::detail
