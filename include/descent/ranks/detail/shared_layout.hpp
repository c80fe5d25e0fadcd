// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/ranks/detail/partition.hpp>
#include <descent/ranks/detail/value_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace descent::detail {

/// How ranks share tensors, buffers and matrices.
template <class Plan> struct shared_layout {
  using tensors = layout<typename Plan::value, typename Plan::gradient>;
  using parallel_policy = typename Plan::parallel_policy;

  static own_shard own(tensors const& where, parallel_policy const& parallel) {
    return partition_of<Plan>(where, parallel).own(where, std::size_t(parallel.comm->rank()));
  }
  static std::int64_t buckets(tensors const& where, parallel_policy const& parallel) {
    return std::ssize(partition_of<Plan>(where, parallel).buckets);
  }
  static meeting_memory memory(tensors const& where, parallel_policy const& parallel) {
    auto const all = partition_of<Plan>(where, parallel);
    int const ranks = parallel.comm->size();
    return meeting_memory_of<Plan>(all, ranks, value_layout_of<Plan>(where, all, ranks).size());
  }

  /// Which matrices this rank owns, its share of the cost and the largest, and by how much parts of the wire are
  /// padded.
  static std::string owned_matrices(tensors const& where, parallel_policy const& parallel) {
    auto const all = partition_of<Plan>(where, parallel);
    auto const ranks = std::size_t(parallel.comm->size());
    std::vector<double> cost(ranks);
    std::string names;
    double total = 0;
    for (std::size_t t = 0; t < all.owners.size(); ++t)
      if (int const owner = all.owners[t].rank; owner >= 0) {
        cost[std::size_t(owner)] += where.costs[t], total += where.costs[t];
        if (owner == parallel.comm->rank()) names += (names.empty() ? " '" : ", '") + where.names[t] + "'";
      }
    auto const segments = value_layout_of<Plan>(where, all, int(ranks)).segments();
    auto const parts = std::ranges::count_if(segments, [](auto const& s) { return s.room > 0; });
    auto const percent = [](double part, double of) { return std::to_string(of > 0 ? int(100 * part / of + 0.5) : 0); };
    return "  rank " + std::to_string(parallel.comm->rank()) + " owns" + (names.empty() ? " none" : names) + ": " +
           percent(cost[std::size_t(parallel.comm->rank())], total) + " % of their cost, the largest share is " +
           percent(std::ranges::max(cost), total) + " %; parts are padded by " +
           percent(double(std::int64_t(ranks) * all.part - where.arena), double(where.arena)) + " %" +
           (parts > 1 ? "; values are sent in " + std::to_string(parts) +
                            " parts, all but the last while matrices are computed"
                      : "");
  }
};

}  // namespace descent::detail
