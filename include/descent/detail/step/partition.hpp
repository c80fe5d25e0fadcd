// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/step/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

/// How tensors are grouped to be sent and their elements divided among ranks: a pure function of the layout, the number
/// of ranks and the bytes of a bucket.
namespace descent::detail {

/// Consecutive tensors, whose gradients are sent together.
struct bucket {
  std::size_t first_tensor, tensors;
  chunk_run all;
  std::vector<chunk_run> shares;  // what each rank owns, if sharded
  std::int64_t room;              // elements of one rank's part
  std::int64_t part;              // offset in the sum: of the rank's own part if sharded, else of all parts
};

/// One run of chunks per rank, in order and of about equal size. Some are empty if there are few chunks.
template <class Layout>
std::vector<chunk_run> shares_of(Layout const& where, chunk_run const& all, int ranks) {
  std::vector<chunk_run> shares;
  std::int64_t begin = all.first_chunk;
  for (int r = 1; r <= ranks; ++r) {
    std::int64_t const target = all.first + all.size / ranks * r + all.size % ranks * r / ranks;
    std::int64_t end = begin;
    while (end < all.first_chunk + all.chunks && (r == ranks || where.arena_at(end) < target)) ++end;
    shares.push_back({begin, end - begin, where.arena_at(begin), where.arena_at(end) - where.arena_at(begin)});
    begin = end;
  }
  return shares;
}

/// All buckets, and the bucket of each tensor.
struct partition {
  std::vector<bucket> buckets;
  std::vector<std::size_t> bucket_of;
  std::int64_t part = 0;     // elements that a rank owns if sharded, else all; padding included
  std::int64_t largest = 0;  // the largest room of a bucket

  /// The rank that owns a chunk.
  template <class Layout> std::size_t owner(Layout const& where, std::int64_t chunk) const {
    auto const& shares = holder(where, chunk).shares;
    auto const ends_before = [&](chunk_run const& s) { return s.first_chunk + s.chunks <= chunk; };
    return std::size_t(std::partition_point(shares.begin(), shares.end(), ends_before) - shares.begin());
  }
  template <class Layout> bucket const& holder(Layout const& where, std::int64_t chunk) const {
    return buckets[bucket_of[std::size_t(where.tensor_of_chunk[std::size_t(chunk)])]];
  }
  own_shard own(int rank) const {
    own_shard own;
    own.size = part;
    for (std::size_t b : bucket_of) {
      chunk_run const& run = buckets[b].shares[std::size_t(rank)];
      own.runs.push_back(run);
      own.arena_offsets.push_back({run.first, buckets[b].part});
    }
    for (auto b = buckets.rbegin(); b != buckets.rend(); ++b)
      for (std::int64_t c = 0; c < b->shares[std::size_t(rank)].chunks; ++c)
        own.chunks.push_back(b->shares[std::size_t(rank)].first_chunk + c);
    return own;
  }
};

/// Fills buckets from the last tensor to the first, in the order of a backward pass. A bucket has at most bucket_bytes
/// on the wire, unless a single tensor has more. Without overlap there is one bucket.
template <class Plan, class Layout> partition partition_of(Layout const& where,
                                                           typename Plan::parallel_policy const& team) {
  int const ranks = team.comm->size();
  std::int64_t limit = where.arena;
  if constexpr (Plan::overlaps) limit = team.bucket_bytes / std::int64_t(sizeof(typename Plan::gradient_sum::wire));
  partition all;
  all.bucket_of.resize(where.tensors.size());
  std::size_t end = where.tensors.size();
  do {
    std::int64_t const stop = end < where.tensors.size() ? where.tensors[end].arena : where.arena;
    std::size_t begin = end;
    while (begin > 0 && (begin == end || stop - where.tensors[begin - 1].arena <= limit)) --begin;
    bucket b{begin, end - begin, {}, {}, 0, all.part};
    if (begin < end) {
      auto const& first = where.tensors[begin];
      std::int64_t const last = end < where.tensors.size() ? where.tensors[end].first_chunk : where.chunks();
      b.all = {first.first_chunk, last - first.first_chunk, first.arena, stop - first.arena};
    }
    b.room = arena_of((b.all.size + ranks - 1) / ranks);
    if constexpr (Plan::shards) {
      b.shares = shares_of(where, b.all, ranks);
      b.room = 0;
      for (chunk_run const& s : b.shares) b.room = std::max(b.room, s.size);
    }
    for (std::size_t t = begin; t < end; ++t) all.bucket_of[t] = all.buckets.size();
    all.part += Plan::shards ? b.room : ranks * b.room;
    all.largest = std::max(all.largest, b.room);
    all.buckets.push_back(std::move(b));
    end = begin;
  } while (end > 0);
  return all;
}

/// The bytes of the buffers through which a rank exchanges data with the others.
struct meeting_memory { std::int64_t sum, sent, received, values; };
template <class Plan> meeting_memory meeting_memory_of(partition const& all, int ranks) {
  using wire = typename Plan::gradient_sum::wire;
  constexpr bool ordered = Plan::gradient_sum::ordered;
  std::int64_t const bucket = ranks * all.largest * std::int64_t(sizeof(wire));
  constexpr int kept =
      Plan::parallel_policy::communicator_type::on_device ? 0 : 2;  // this rank's values: as sent, and as before
  std::int64_t const sum = Plan::keeps_sum ? all.part * std::int64_t(sizeof(typename Plan::gradient_sum::sum)) : 0;
  return {sum, Plan::shards || ordered ? bucket : 0, ordered ? bucket : 0,
          Plan::shards ? (ranks + kept) * all.part * Plan::largest_value : 0};
}

inline void require_root(int root, int ranks) {
  if (root < 0 || root >= ranks)
    throw std::invalid_argument("broadcast: root must be in [0, " + std::to_string(ranks) + "), is " +
                                std::to_string(root));
}

/// The divisor of gradients on the wire. It guards sums in half against overflow; a power of two is exact.
template <class Wire> double wire_divisor_of(int ranks) {
  double wire_divisor = 1;
  if (std::is_same_v<Wire, half>)
    while (wire_divisor * wire_divisor < ranks) wire_divisor *= 2;
  return wire_divisor;
}

/// The elements of a tensor in a run of chunks.
struct tensor_part { std::int64_t begin, size; };
template <class Record> tensor_part part_in(Record const& tensor, chunk_run const& run) {
  auto const element = [&](std::int64_t chunk) {
    return std::clamp((chunk - tensor.first_chunk) * chunk_size, std::int64_t{0}, tensor.count);
  };
  std::int64_t const begin = element(run.first_chunk), end = element(run.first_chunk + run.chunks);
  return {begin, end - begin};
}

}  // namespace descent::detail
