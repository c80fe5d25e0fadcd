// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/math.hpp>

#include <cstddef>
#include <cstdint>

/// The order in which partial sums are added: the same on host and device for any number of threads or blocks. A chunk
/// is summed by `chunk_threads` lanes, packet q by lane q mod chunk_threads; the sums of chunks by `total_threads`
/// lanes, chunk c by lane c mod total_threads; those of a tensor by one warp. Lanes are added within a warp, neighbours
/// first, then warps in order. This is the host's part; block_reduce.cuh has the device's.
namespace descent::detail {

inline constexpr int chunk_threads = 256, total_threads = 512, warp = 32;

/// The order of magnitudes, in which NaN is the largest. Without the sign: a GPU may leave it in a NaN after abs().
DESCENT_HD inline std::uint64_t magnitude_bits(double x) { return __builtin_bit_cast(std::uint64_t, x) << 1; }

/// The larger of two numbers that are +0 or above. NaN if either is NaN.
DESCENT_HD inline double larger(double a, double b) { return magnitude_bits(a) > magnitude_bits(b) ? a : b; }

/// Combines two partial results of a row: the first row of an infinity norm keeps the larger one, all others add.
template <bool Largest> struct combine {
  DESCENT_HD double operator()(double a, double b) const {
    if constexpr (Largest) return larger(a, b);
    else return a + b;
  }
};

/// Combines the four accumulators of a lane.
template <bool Largest = false> DESCENT_HD double fold(double const (&a)[4]) {
  combine<Largest> const both;
  return both(both(a[0], a[2]), both(a[1], a[3]));
}

/// The same for four neighbouring lanes.
template <bool Largest = false>
DESCENT_HD double fold_four(double const (&a)[4], double const (&b)[4], double const (&c)[4], double const (&d)[4]) {
  combine<Largest> const both;
  return both(both(fold<Largest>(a), fold<Largest>(b)), both(fold<Largest>(c), fold<Largest>(d)));
}

/// Adds neighbours first, so each round halves the number of lanes. If the lanes are already sums of neighbours, a warp
/// has fewer of them.
template <bool Largest = false> double add_block(double* lane, int lanes, int warp_size = warp) {
  int const warps = lanes / warp_size;
  for (int left = lanes / 2; left >= warps; left /= 2)
    for (int i = 0; i < left; ++i) lane[i] = combine<Largest>{}(lane[2 * i], lane[2 * i + 1]);
  double sum = lane[0];
  for (int i = 1; i < warps; ++i) sum = combine<Largest>{}(sum, lane[i]);
  return sum;
}

/// Combines value(i) for i in [first, end) with Lanes lanes, as if all others in [0, count) were +0.
template <int Lanes, bool Largest = false, class Value>
double add_strided(Value const& value, std::int64_t first, std::int64_t end) {
  double lane[std::size_t(Lanes)] = {};
  for (std::int64_t i = first; i < end; ++i) lane[i % Lanes] = combine<Largest>{}(lane[i % Lanes], value(i));
  return add_block<Largest>(lane, Lanes);
}

template <int Lanes, bool Largest = false, class Value> double add_strided(Value const& value, std::int64_t count) {
  return add_strided<Lanes, Largest>(value, 0, count);
}

/// The largest of the values in [first, end), or their sum.
template <int Lanes, class Value>
double strided_total(bool largest, std::int64_t first, std::int64_t end, Value const& value) {
  return largest ? add_strided<Lanes, true>(value, first, end) : add_strided<Lanes>(value, first, end);
}
template <int Lanes, class Value> double strided_total(bool largest, std::int64_t count, Value const& value) {
  return strided_total<Lanes>(largest, 0, count, value);
}

// Squares of doubles may overflow: large values are scaled down and summed separately; the sum of the rest is finite.
inline constexpr double large_threshold = 0x1p480, large_scale = 0x1p-600;

}  // namespace descent::detail
