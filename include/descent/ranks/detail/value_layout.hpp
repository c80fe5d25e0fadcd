// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/step/layout.hpp>
#include <descent/ranks/detail/partition.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

/// How sharded ranks send the values that they have changed to all: a pure function of the layout and the partition.
namespace descent::detail {

/// The matrices that the matrix rule updates, in the order in which a device does: those of one group and shape follow
/// each other.
template <class Layout> std::vector<std::size_t> matrices_in_order(Layout const& where) {
  std::map<std::tuple<std::int32_t, std::int64_t, std::int64_t>, std::size_t> first;
  std::vector<std::size_t> all, like(where.tensors.size());
  for (std::size_t t = 0; t < where.tensors.size(); ++t)
    if (auto const& x = where.tensors[t]; x.matrix) {
      like[t] = first.try_emplace({x.group, x.count, where.columns[t]}, t).first->second;
      all.push_back(t);
    }
  std::ranges::stable_sort(all, {}, [&](std::size_t t) { return like[t]; });
  return all;
}

/// The buffer of all ranks' values: [segment][rank][element]. Each segment is sent by one all-gather. With matrices on
/// a device there are several, so that some are sent while the next are computed: first what the rule updates, then
/// matrices in the order in which their owners finish them. A segment is padded to the largest rank, so there are as
/// many as padding of an eighth allows.
class value_layout {
 public:
  struct segment {
    std::int64_t first, room;       // the elements of all ranks begin at `first`; those of one take `room`
    std::vector<std::size_t> ends;  // of each rank: how many of its matrices are in the segments up to this one
  };
  static constexpr std::size_t most_segments = 5;

  /// `divides`: whether to send values in several segments.
  template <class Layout>
  value_layout(Layout const& where, partition const& all, std::size_t ranks, bool divides) : ranks_(ranks) {
    auto const order = divides ? matrices_in_order(where) : std::vector<std::size_t>{};
    for (std::size_t n = order.empty() ? 1 : most_segments; n > 1; --n) {
      divide(where, all, order, n - 1);
      if (8 * size() <= 9 * all.part) return;
    }
    places_.clear();
    segments_ = {{0, all.part, std::vector<std::size_t>(ranks, order.size())}};
  }

  std::vector<segment> const& segments() const { return segments_; }
  /// The elements of one rank in all segments.
  std::int64_t size() const {
    std::int64_t sum = 0;
    for (segment const& s : segments_) sum += s.room;
    return sum;
  }
  /// The place of the elements of a tensor that a rank has.
  template <class Layout>
  arena_offset place(Layout const& where, partition const& all, std::size_t tensor, std::size_t rank) const {
    auto const [first, in_part] = all.in_part(where, tensor, rank);
    std::size_t const b = all.bucket_of[tensor];
    if (places_.empty()) return {first, std::int64_t(rank) * all.part + all.buckets[b].part + in_part};
    auto const& [s, place] = places_[tensor];
    segment const& in = segments_[s];
    std::int64_t const of_rank = in.first + std::int64_t(rank) * in.room;
    return {first, of_rank + (all.owners[tensor].rank >= 0 ? place : rule_places_[b][rank])};
  }

 private:
  template <class Layout>
  void divide(Layout const& where, partition const& all, std::vector<std::size_t> const& order, std::size_t parts) {
    segments_.assign(parts + 1, {0, 0, std::vector<std::size_t>(ranks_)});
    places_.assign(where.tensors.size(), {0, 0});
    rule_places_.clear();
    std::vector<std::int64_t> taken(ranks_), total(ranks_), begin(ranks_);
    for (bucket const& b : all.buckets) {
      rule_places_.push_back(taken);
      for (std::size_t r = 0; r < ranks_; ++r) taken[r] += b.shares[r].size;
    }
    segments_[0].room = std::ranges::max(taken);
    auto const owner = [&](std::size_t t) { return std::size_t(all.owners[t].rank); };
    for (std::size_t t : order) total[owner(t)] += arena_of(where.tensors[t].count);
    taken.assign(ranks_, 0);
    std::vector<std::size_t> at(ranks_);
    for (std::size_t t : order) {
      std::size_t const r = owner(t);
      std::int64_t const n = arena_of(where.tensors[t].count), middle = taken[r] + n / 2;
      std::size_t const s = 1 + std::size_t(middle * std::int64_t(parts) / std::max<std::int64_t>(total[r], 1));
      if (s != at[r]) begin[r] = taken[r], at[r] = s;
      places_[t] = {s, taken[r] - begin[r]};
      taken[r] += n;
      segments_[s].room = std::max(segments_[s].room, taken[r] - begin[r]);
      for (std::size_t k = s; k <= parts; ++k) ++segments_[k].ends[r];
    }
    std::int64_t first = 0;
    for (segment& s : segments_) s.first = first, first += std::int64_t(ranks_) * s.room;
  }

  struct in_segment {
    std::size_t segment;
    std::int64_t place;
  };
  std::size_t ranks_;
  std::vector<segment> segments_;
  std::vector<in_segment> places_;                      // of each tensor; only a matrix's place is used
  std::vector<std::vector<std::int64_t>> rule_places_;  // [bucket][rank]
};

template <class Plan, class Layout>
value_layout value_layout_of(Layout const& where, partition const& all, int ranks) {
  constexpr bool on_device = Plan::parallel_policy::communicator_type::on_device;
  return {where, all, std::size_t(ranks), Plan::shards && Plan::has_matrices && on_device};
}

}  // namespace descent::detail
