// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/data/order.hpp>
#include <descent/data/weighted.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace descent {

/// An order over several sources in a row (`concat`), which takes from each in proportion to its weight:
///
///     source s has n_s = draws w_s / (sum of w) places of an epoch, rounded up or down to the sum of draws
///
/// The places are in random order. A source with fewer than n_s records comes several times; one with more
/// continues in the next epoch where it stopped, so each of its records comes once before any comes again.
struct mixture {
  std::vector<std::int64_t> sizes;  ///< records of each source, see concat::sizes()
  std::vector<double> weights;  ///< one for each source, finite, at least 0; 0 for a source without records
  std::int64_t draws = 0;  ///< places of an epoch
  std::uint64_t seed = 0;  ///< the same on all ranks

  /// The places of an epoch.
  class places {
   public:
    std::int64_t size() const { return order_.size(); }  ///< the number of draws
    /// The record, counted over all sources.
    std::int64_t operator[](std::int64_t place) const {
      std::int64_t draw = order_[place], begin = 0;
      std::size_t s = 0;
      for (; draw >= counts_[s]; ++s) draw -= counts_[s], begin += sizes_[s];
      std::int64_t const draws_before = epoch_ * counts_[s] + draw, n = sizes_[s];
      return begin + permutation(n, seed_ + s, draws_before / n)[draws_before % n];
    }

   private:
    friend mixture;
    places(mixture const& of, std::vector<std::int64_t> counts, std::int64_t epoch)
        : order_(of.draws, of.seed + of.sizes.size(), epoch), sizes_(of.sizes), counts_(std::move(counts)),
          seed_(of.seed), epoch_(epoch) {}

    permutation order_;
    std::vector<std::int64_t> sizes_, counts_;
    std::uint64_t seed_;
    std::int64_t epoch_;
  };

  /// The places of this epoch.
  places epoch(std::int64_t records, std::int64_t epoch) const {
    detail::require_records("mixture", records, epoch);
    detail::require(draws >= 0 && draws <= detail::most_examples, "mixture", "draws", "in [0, 2^48]", draws);
    std::int64_t const last = (std::int64_t{1} << 62) / std::max<std::int64_t>(draws, 1);
    detail::require(epoch <= last, "mixture", "the epoch", ("in [0, " + std::to_string(last) + "]").c_str(), epoch);
    std::int64_t sum = 0;
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      detail::require_entry(sizes[s] >= 0 && sizes[s] <= records - sum, "mixture", "sizes", s,
                            ("at least 0, with a sum of " + std::to_string(records)).c_str(), sizes[s]);
      sum += sizes[s];
    }
    detail::require(sum == records, "mixture", "the sum of sizes",
                    ("the number of records, " + std::to_string(records)).c_str(), sum);
    detail::require_weights("mixture", weights, std::int64_t(sizes.size()), draws > 0, "of the sources");
    for (std::size_t s = 0; s < sizes.size(); ++s)
      detail::require_entry(sizes[s] > 0 || !(weights[s] > 0), "mixture", "weights", s,
                            "0, for a source without records", weights[s]);
    return {*this, counts(), epoch};
  }

 private:
  /// Places of each source: rounded down, then one more for those with the largest rest.
  std::vector<std::int64_t> counts() const {
    std::vector<std::int64_t> n(sizes.size());
    if (draws == 0) return n;
    double const most = *std::ranges::max_element(weights);
    double all = 0;
    for (double const w : weights) all += w / most;  // finite
    std::vector<std::pair<double, std::size_t>> rest;
    std::int64_t left = draws;
    for (std::size_t s = 0; s < n.size(); ++s) {
      double const share = weights[s] / most / all * double(draws);
      n[s] = std::min(std::int64_t(share), left);
      left -= n[s];
      if (weights[s] > 0) rest.emplace_back(std::floor(share) - share, s);
    }
    std::ranges::sort(rest);
    for (std::size_t k = 0; left > 0; k = (k + 1) % rest.size(), --left) ++n[rest[k].second];
    return n;
  }
};

}  // namespace descent
