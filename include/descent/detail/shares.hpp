// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
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

/// The memory in which a rank meets the others: the elements of a part, and the bytes of each buffer.
struct meeting_memory {
  std::int64_t part, sum, sent, received, values;
};
template <class Plan, class Layout> meeting_memory meeting_memory_of(Layout const& where, int ranks) {
  using wire = typename Plan::reduced::wire;
  constexpr bool ordered = Plan::reduced::ordered;
  std::int64_t part = arena_of((where.arena + ranks - 1) / ranks);
  if constexpr (Plan::shards) part = largest_of(shares_of(where, ranks));
  std::int64_t const all = ranks * part;
  constexpr int kept = Plan::team::communicator_type::on_device ? 0 : 2;  // the own values, as sent and as before
  return {part, (Plan::shards ? part : all) * std::int64_t(sizeof(typename Plan::reduced::sum)),
          Plan::shards || ordered ? all * std::int64_t(sizeof(wire)) : 0,
          ordered ? all * std::int64_t(sizeof(wire)) : 0,
          Plan::shards ? (ranks + kept) * part * Plan::largest_value : 0};
}

inline void require_root(int root, int ranks) {
  if (root < 0 || root >= ranks)
    throw std::invalid_argument("broadcast: root must be in [0, " + std::to_string(ranks) + "), is " +
                                std::to_string(root));
}

/// What gradients are divided by on the wire. What rounds in half must not overflow in a sum: a power of two is exact.
template <class Wire> double shrink_of(int ranks) {
  double shrink = 1;
  if (std::is_same_v<Wire, half>)
    while (shrink * shrink < ranks) shrink *= 2;
  return shrink;
}

/// Which share a chunk is in.
inline std::size_t share_of(std::vector<chunk_run> const& shares, std::int64_t chunk) {
  auto const ends_before = [&](chunk_run const& s) { return s.first_chunk + s.chunks <= chunk; };
  return std::size_t(std::partition_point(shares.begin(), shares.end(), ends_before) - shares.begin());
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
