// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

/// How the elements are divided among ranks: a pure function of the layout and the number of ranks.
namespace descent::detail {

/// One run of chunks for each rank, in order, of about the same room. Some are empty where chunks are few.
template <class Layout> std::vector<chunk_run> shares_of(Layout const& where, int ranks) {
  std::vector<chunk_run> shares;
  std::int64_t begin = 0;
  for (int r = 1; r <= ranks; ++r) {
    std::int64_t const target = where.arena / ranks * r + where.arena % ranks * r / ranks;
    std::int64_t end = begin;
    while (end < where.chunks() && (r == ranks || where.arena_at(end) < target)) ++end;
    shares.push_back({begin, end - begin, where.arena_at(begin), where.arena_at(end) - where.arena_at(begin)});
    begin = end;
  }
  return shares;
}

/// The room of the largest.
inline std::int64_t largest_of(std::vector<chunk_run> const& shares) {
  std::int64_t size = 0;
  for (chunk_run const& s : shares) size = std::max(size, s.size);
  return size;
}

/// Which share a chunk is in.
inline std::size_t share_of(std::vector<chunk_run> const& shares, std::int64_t chunk) {
  std::size_t q = 0;
  while (chunk >= shares[q].first_chunk + shares[q].chunks) ++q;
  return q;
}

/// The elements of a tensor that lie in a run of chunks.
struct tensor_part {
  std::int64_t begin, size;
};
template <class Record> tensor_part part_in(Record const& tensor, chunk_run const& run) {
  auto const element = [&](std::int64_t chunk) {
    return std::clamp((chunk - tensor.first_chunk) * chunk_size, std::int64_t{0}, tensor.count);
  };
  std::int64_t const begin = element(run.first_chunk), end = element(run.first_chunk + run.chunks);
  return {begin, end - begin};
}

}  // namespace descent::detail
