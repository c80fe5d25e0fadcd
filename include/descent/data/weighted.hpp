// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/data/order.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Orders that draw records by weights.
namespace descent {

namespace detail {

/// Throws std::invalid_argument if there is not one weight for each record, or one is not finite and at least 0, or
/// fewer than `least` are above 0.
inline void require_weights(char const* who, std::vector<double> const& weights, std::int64_t records,
                            std::int64_t least, char const* of = "of the records") {
  require(std::int64_t(weights.size()) == records, who, "the number of weights",
          ("that " + std::string(of) + ", " + std::to_string(records)).c_str(), weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    require_entry(weights[i] >= 0 && is_finite(weights[i]), who, "weights", i, "finite and at least 0", weights[i]);
  std::int64_t const above = std::ranges::count_if(weights, [](double w) { return w > 0; });
  require(above >= least, who, "the number of weights above 0", ("at least " + std::to_string(least)).c_str(), above);
}

/// Draws i in [0, n) with probability w[i] / (sum of w), in constant time (Walker 1977; the table as in Vose 1991).
///
///     i uniform; i if u < keep[i], else other[i]
class alias_table {
 public:
  explicit alias_table(std::vector<double> const& weights) : other_(weights.size()), keep_(weights.size()) {
    if (weights.empty()) return;
    auto const largest = std::ranges::max_element(weights);
    double const most = *largest;
    double sum = 0;
    for (double const w : weights) sum += w / most;  // finite
    std::vector<std::size_t> small, large;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      keep_[i] = weights[i] / most / sum * double(weights.size());
      (keep_[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      std::size_t const s = small.back(), l = large.back();
      small.pop_back();
      other_[s] = std::int64_t(l);
      keep_[l] -= 1 - keep_[s];
      if (keep_[l] >= 1) continue;
      large.pop_back();
      small.push_back(l);
    }
    // Only roundings are left: these are 1, and none of them has a weight of 0.
    for (std::size_t const i : large) keep_[i] = 1;
    for (std::size_t const i : small)
      if (weights[i] > 0) keep_[i] = 1;
      else other_[i] = std::int64_t(largest - weights.begin());
  }
  std::int64_t draw(std::uint64_t bits, double unit) const {
    auto const i = std::size_t(high_product(bits, keep_.size()));
    return unit < keep_[i] ? std::int64_t(i) : other_[i];
  }

 private:
  /// The high 64 bits of a product.
  static std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
    std::uint64_t const a1 = a >> 32, a0 = a & 0xffffffff, b1 = b >> 32, b0 = b & 0xffffffff;
    std::uint64_t const middle = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (middle >> 32) + (((middle & 0xffffffff) + a0 * b1) >> 32);
  }

  std::vector<std::int64_t> other_;
  std::vector<double> keep_;
};

}  // namespace detail

/// Independent draws, record i with a probability proportional to its weight, so that a record may come several times:
/// PyTorch's WeightedRandomSampler, with other random numbers. An epoch makes a table of 16 bytes per record.
struct weighted {
  std::vector<double> weights;  ///< one for each record, finite, at least 0; one at least is above 0 if there are draws
  std::int64_t draws = 0;  ///< places of an epoch
  std::uint64_t seed = 0;  ///< the same on all ranks

  /// The draws of an epoch.
  class places {
   public:
    places(weighted const& of, std::int64_t epoch)
        : table_(of.draws > 0 ? of.weights : std::vector<double>()), draws_(of.draws), seed_(of.seed), epoch_(epoch) {}
    std::int64_t size() const { return draws_; }  ///< the number of draws
    /// The record of one draw.
    std::int64_t operator[](std::int64_t place) const {
      return table_.draw(detail::order_bits(seed_, epoch_, place, 1),
                         detail::unit_of(detail::order_bits(seed_, epoch_, place, 2)));
    }

   private:
    detail::alias_table table_;
    std::int64_t draws_;
    std::uint64_t seed_;
    std::int64_t epoch_;
  };

  /// The draws of this epoch; builds the table.
  places epoch(std::int64_t records, std::int64_t epoch) const {
    detail::require_records("weighted", records, epoch);
    detail::require(draws >= 0 && draws <= detail::most_examples, "weighted", "draws", "in [0, 2^48]", draws);
    detail::require_weights("weighted", weights, records, draws > 0);
    return {*this, epoch};
  }
};

/// Draws without replacement, in proportion to the weights of the records that are left, as torch.multinomial without
/// replacement. Each record gets a key, and the records with the smallest keys come in the order of the keys
/// (Efraimidis & Spirakis 2006, algorithm A with -log):
///
///     key = -log(u) / w        u uniform in (0, 1)
///
/// An epoch sorts the keys and makes a list of 8 bytes per draw.
struct weighted_once {
  std::vector<double> weights;  ///< one for each record, finite, at least 0; `draws` of them at least are above 0
  std::int64_t draws = 0;  ///< places of an epoch
  std::uint64_t seed = 0;  ///< the same on all ranks

  /// The draws of this epoch; sorts.
  listed epoch(std::int64_t records, std::int64_t epoch) const {
    detail::require_records("weighted_once", records, epoch);
    detail::require(draws >= 0 && draws <= records, "weighted_once", "draws", "in [0, records]", draws);
    detail::require_weights("weighted_once", weights, records, draws);
    std::vector<std::pair<double, std::int64_t>> keys;
    for (std::int64_t i = 0; i < records; ++i) {
      double const w = weights[std::size_t(i)], u = detail::unit_of(detail::order_bits(seed, epoch, i, 3)) + 0x1p-54;
      if (w > 0) keys.emplace_back(std::log(-std::log(u)) - std::log(w), i);  // a logarithm of the key is finite
    }
    std::ranges::partial_sort(keys, keys.begin() + draws);
    std::vector<std::int64_t> list;
    for (std::int64_t k = 0; k < draws; ++k) list.push_back(keys[std::size_t(k)].second);
    return listed(std::move(list));
  }
};

}  // namespace descent
