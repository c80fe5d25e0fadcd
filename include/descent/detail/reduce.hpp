// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/math.hpp>

#include <cstdint>

/// The order in which partial sums are added, the same on host and device whatever the number of threads or blocks.
/// A chunk is summed by `chunk_threads` lanes, packet q by lane q mod chunk_threads; the chunks' sums by `total_threads`
/// lanes, chunk c by lane c mod total_threads; a tensor's by one warp. Lanes are then added as cub::BlockReduce
/// (BLOCK_REDUCE_WARP_REDUCTIONS) and cub::WarpReduce do it: neighbours first within a warp, then warps in order. These
/// are the host's versions.
namespace descent::detail {

inline constexpr int chunk_threads = 256, total_threads = 512, warp = 32;

/// Adds the four accumulators of a lane.
DESCENT_HD inline double fold(double const (&a)[4]) { return (a[0] + a[2]) + (a[1] + a[3]); }

inline double add_warp(double* lane) {
  for (int distance = 1; distance < warp; distance *= 2)
    for (int i = 0; i < warp; i += 2 * distance) lane[i] += lane[i + distance];
  return lane[0];
}

inline double add_block(double* lane, int lanes) {
  double sum = add_warp(lane);
  for (int i = warp; i < lanes; i += warp) sum += add_warp(lane + i);
  return sum;
}

/// Adds count values by Lanes lanes.
template <int Lanes> double add_strided(double const* x, std::int64_t count) {
  double lane[Lanes] = {};
  for (std::int64_t i = 0; i < count; ++i) lane[i % Lanes] += x[i];
  return add_block(lane, Lanes);
}

}  // namespace descent::detail
