// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// How tensors are grouped to be sent and their elements divided among ranks: a pure function of the layout, the number
/// of ranks and the bytes of a bucket.
namespace descent::detail {

/// Consecutive tensors, whose gradients are sent together. In the arena they are two runs: `of_rule`, which the
/// optimizer's rule updates, and the matrices of the matrix rule.
struct bucket {
  std::size_t first_tensor, tensors;
  chunk_run of_rule, matrices;
  std::vector<chunk_run> shares;  // of `of_rule`: what each rank owns, if sharded
  std::int64_t room;              // elements of one rank's part
  std::int64_t part;              // offset in the sum: of the rank's own part if sharded, else of all parts

  std::int64_t size() const { return of_rule.size + matrices.size; }
};

/// The size to which `size` elements fill up ranks that have `taken` already.
inline std::int64_t level_of(std::int64_t size, std::vector<std::int64_t> taken) {
  std::ranges::sort(taken);
  std::int64_t level = 0, sum = size;
  for (std::size_t k = 0; k < taken.size(); ++k) {
    if (k > 0 && level <= taken[k]) break;
    sum += taken[k];
    level = sum / std::int64_t(k + 1);
  }
  return level;
}

/// One run of chunks per rank, in order. With what ranks have of matrices, all have about equally much, if the chunks
/// suffice. Some runs are empty if there are few chunks.
template <class Layout>
std::vector<chunk_run> shares_of(Layout const& where, chunk_run const& all, std::vector<std::int64_t> const& taken) {
  auto const ranks = std::int64_t(taken.size());
  std::int64_t const level = level_of(all.size, taken);
  auto const wanted = [&](std::int64_t r) { return std::max(level - taken[std::size_t(r)], std::int64_t{0}); };
  std::int64_t left = all.size;
  for (std::int64_t r = 0; r < ranks; ++r) left -= wanted(r);
  std::vector<chunk_run> shares;
  std::int64_t begin = all.first_chunk, sum = all.first;
  for (std::int64_t r = 0; r < ranks; ++r) {
    sum += wanted(r);
    std::int64_t const target = sum + left * (r + 1) / ranks;
    std::int64_t end = begin;
    while (end < all.first_chunk + all.chunks && (r + 1 == ranks || where.arena_at(end) < target)) ++end;
    shares.push_back({begin, end - begin, where.arena_at(begin), where.arena_at(end) - where.arena_at(begin)});
    begin = end;
  }
  return shares;
}

/// The rank that owns a matrix, and the matrix's place in that rank's part of the bucket.
struct matrix_owner {
  int rank = -1;  // -1: not a matrix, or every rank has it
  std::int64_t place = 0;
};

/// Assigns the matrices of the tensors [begin, end), the most expensive first, each to the rank with the least work so
/// far (Graham 1969). Adds to `load` and returns the elements of each rank.
template <class Layout>
std::vector<std::int64_t> assign_matrices(Layout const& where, std::size_t begin, std::size_t end,
                                          std::vector<double>& load, std::vector<matrix_owner>& owners) {
  std::vector<std::int64_t> elements(load.size());
  std::vector<std::size_t> matrices;
  for (std::size_t t = begin; t < end; ++t)
    if (where.tensors[t].matrix) matrices.push_back(t);
  std::ranges::stable_sort(matrices, std::ranges::greater{}, [&](std::size_t t) { return where.costs[t]; });
  for (std::size_t t : matrices) {
    auto const r = std::size_t(std::ranges::min_element(load) - load.begin());
    load[r] += where.costs[t];
    owners[t] = {int(r), elements[r]};
    elements[r] += arena_of(where.tensors[t].count);
  }
  return elements;
}

/// All buckets, and the bucket of each tensor.
struct partition {
  std::vector<bucket> buckets;
  std::vector<std::size_t> bucket_of;
  std::vector<matrix_owner> owners;  // of each tensor
  std::int64_t part = 0;     // elements that a rank owns if sharded, else all; padding included
  std::int64_t largest = 0;  // the largest room of a bucket

  /// The rank that owns a chunk.
  template <class Layout> std::size_t owner(Layout const& where, std::int64_t chunk) const {
    auto const t = std::size_t(where.tensor_of_chunk[std::size_t(chunk)]);
    if (owners[t].rank >= 0) return std::size_t(owners[t].rank);
    auto const& shares = buckets[bucket_of[t]].shares;
    auto const ends_before = [&](chunk_run const& s) { return s.first_chunk + s.chunks <= chunk; };
    return std::size_t(std::partition_point(shares.begin(), shares.end(), ends_before) - shares.begin());
  }
  /// The place of a tensor's elements in a rank's part of the bucket; in the whole bucket.
  template <class Layout> arena_offset in_part(Layout const& where, std::size_t tensor, std::size_t rank) const {
    if (owners[tensor].rank >= 0) return {where.tensors[tensor].arena, owners[tensor].place};
    return {buckets[bucket_of[tensor]].shares[rank].first, 0};
  }
  template <class Layout> arena_offset in_bucket(Layout const& where, std::size_t tensor) const {
    bucket const& b = buckets[bucket_of[tensor]];
    return where.tensors[tensor].matrix ? arena_offset{b.matrices.first, b.of_rule.size}
                                        : arena_offset{b.of_rule.first, 0};
  }
  /// The elements of a tensor that a rank owns.
  template <class Layout> tensor_part part_of(Layout const& where, std::size_t tensor, std::size_t rank) const {
    auto const& x = where.tensors[tensor];
    if (owners[tensor].rank >= 0) return {0, owners[tensor].rank == int(rank) ? x.count : 0};
    chunk_run const& run = buckets[bucket_of[tensor]].shares[rank];
    auto const element = [&](std::int64_t chunk) {
      return std::clamp((chunk - x.first_chunk) * chunk_size, std::int64_t{0}, x.count);
    };
    std::int64_t const begin = element(run.first_chunk), end = element(run.first_chunk + run.chunks);
    return {begin, end - begin};
  }
  template <class Layout> own_shard own(Layout const& where, std::size_t rank) const {
    own_shard own;
    own.size = part;
    std::vector<std::int64_t> of_rule;  // of each bucket, where its part begins in the state of the rule
    for (bucket const& b : buckets)
      of_rule.push_back(std::exchange(own.rule_size, own.rule_size + b.shares[rank].size));
    for (std::size_t t = 0; t < bucket_of.size(); ++t) {
      bucket const& b = buckets[bucket_of[t]];
      own.parts.push_back(part_of(where, t, rank));
      own.arena_offsets.push_back(in_part(where, t, rank));
      own.arena_offsets.back().part += b.part;
      own.rule_offsets.push_back({b.shares[rank].first, of_rule[bucket_of[t]]});
    }
    for (auto b = buckets.rbegin(); b != buckets.rend(); ++b)
      for (std::int64_t c = 0; c < b->shares[rank].chunks; ++c) own.chunks.push_back(b->shares[rank].first_chunk + c);
    own.rule_chunks = std::ssize(own.chunks);
    for (std::size_t t = 0; t < owners.size(); ++t)
      if (owners[t].rank == int(rank))
        for (std::int64_t c = 0; c < chunks_of(where.tensors[t].count); ++c)
          own.chunks.push_back(where.tensors[t].first_chunk + c);
    return own;
  }
};

/// Fills buckets from the last tensor to the first, in the order of a backward pass. A bucket has at most bucket_bytes
/// on the wire, unless a single tensor has more. Without overlap there is one bucket. With shards no matrix is divided,
/// so parts of a bucket have unequal sizes and are padded to the largest: a bucket with matrices takes further tensors
/// until padding is at most a quarter of it.
template <class Plan, class Layout> partition partition_of(Layout const& where,
                                                           typename Plan::parallel_policy const& parallel) {
  constexpr bool owns_matrices = Plan::has_matrices && Plan::shards;
  auto const ranks = std::size_t(parallel.comm->size());
  std::int64_t limit = where.arena;
  if constexpr (Plan::overlaps) limit = parallel.bucket_bytes / std::int64_t(sizeof(typename Plan::gradient_sum::wire));
  partition all;
  all.bucket_of.resize(where.tensors.size());
  all.owners.resize(where.tensors.size());
  std::vector<double> load(ranks);  // the cost of the matrices of each rank
  std::vector<std::int64_t> elements(ranks);  // of the bucket's matrices of each rank
  std::size_t end = where.tensors.size();
  do {
    bucket b{end, 0, {}, {}, {}, 0, all.part};
    std::int64_t largest_matrix = 0;
    auto const is_padded = [&] {
      if constexpr (owns_matrices && Plan::overlaps) {
        if (std::int64_t(ranks) * largest_matrix > b.matrices.size + b.matrices.size / 4) return true;
        auto trial = load;
        std::int64_t const largest = std::ranges::max(assign_matrices(where, b.first_tensor, end, trial, all.owners));
        return std::int64_t(ranks) * largest > b.matrices.size + b.matrices.size / 4;
      } else return false;
    };
    while (b.first_tensor > 0) {
      auto const& x = where.tensors[b.first_tensor - 1];
      if (b.first_tensor < end && b.size() + arena_of(x.count) > limit && !is_padded()) break;
      --b.first_tensor;
      chunk_run& run = x.matrix ? b.matrices : b.of_rule;
      run = {x.first_chunk, run.chunks + chunks_of(x.count), x.arena, run.size + arena_of(x.count)};
      if (x.matrix) largest_matrix = std::max(largest_matrix, arena_of(x.count));
    }
    b.tensors = end - b.first_tensor;
    b.room = arena_of((b.size() + std::int64_t(ranks) - 1) / std::int64_t(ranks));
    if constexpr (Plan::shards) {
      if constexpr (owns_matrices) elements = assign_matrices(where, b.first_tensor, end, load, all.owners);
      b.shares = shares_of(where, b.of_rule, elements);
      b.room = 0;
      for (std::size_t r = 0; r < ranks; ++r) b.room = std::max(b.room, b.shares[r].size + elements[r]);
      for (std::size_t t = b.first_tensor; t < end; ++t)
        if (int const r = all.owners[t].rank; r >= 0) all.owners[t].place += b.shares[std::size_t(r)].size;
    }
    end = b.first_tensor;
    for (std::size_t t = end; t < end + b.tensors; ++t) all.bucket_of[t] = all.buckets.size();
    all.part += Plan::shards ? b.room : std::int64_t(ranks) * b.room;
    all.largest = std::max(all.largest, b.room);
    all.buckets.push_back(std::move(b));
  } while (end > 0);
  return all;
}

/// A tensor's chunks.
struct tensor_chunks {
  std::int64_t first, count;
  bool of_matrix;
};
/// Calls f(first chunk, chunks, place in the bucket, absent) for runs of chunks of a bucket: those of tensors that are
/// neighbours in the arena and of which absent(tensor) says the same.
template <class Absent, class F>
void each_run(bucket const& b, std::vector<tensor_chunks> const& of, Absent const& absent, F const& f) {
  for (bool const matrices : {false, true}) {
    arena_offset const place =
        matrices ? arena_offset{b.matrices.first, b.of_rule.size} : arena_offset{b.of_rule.first};
    std::int64_t first = 0, count = 0;
    bool missing = false;
    for (std::size_t t = b.first_tensor; t < b.first_tensor + b.tensors; ++t) {
      if (of[t].of_matrix != matrices || of[t].count == 0) continue;
      if (count > 0 && absent(t) != missing) f(first, std::exchange(count, 0), place, missing);
      if (count == 0) first = of[t].first, missing = absent(t);
      count += of[t].count;
    }
    if (count > 0) f(first, count, place, missing);
  }
}

/// The bytes of the buffers through which a rank exchanges data with the others. `values`: the elements of one rank in
/// the buffer of all values.
struct meeting_memory { std::int64_t sum, sent, received, values; };
template <class Plan> meeting_memory meeting_memory_of(partition const& all, int ranks, std::int64_t values) {
  using wire = typename Plan::gradient_sum::wire;
  constexpr bool ordered = Plan::gradient_sum::ordered;
  std::int64_t const bucket = ranks * all.largest * std::int64_t(sizeof(wire));
  constexpr int kept =
      Plan::parallel_policy::communicator_type::on_device ? 0 : 2;  // this rank's values: as sent, and as before
  std::int64_t const sum = Plan::keeps_sum ? all.part * std::int64_t(sizeof(typename Plan::gradient_sum::sum)) : 0;
  return {sum, Plan::shards || ordered ? bucket : 0, ordered ? bucket : 0,
          Plan::shards ? (ranks + kept) * values * Plan::largest_value : 0};
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

}  // namespace descent::detail
