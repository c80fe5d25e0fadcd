// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/detail/philox.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// In which order an epoch takes the records of a data set: functions of a seed, the epoch and the place. They hold no
/// state, so every thread and every rank finds the same record for the same place, and a run can resume anywhere.
namespace descent {

/// The places of one epoch: size() of them, and the record at each. A record is a number in [0, records).
template <class P> concept epoch_places = requires(P const p, std::int64_t place) {
  { p.size() } -> std::same_as<std::int64_t>;
  { p[place] } -> std::same_as<std::int64_t>;
};
/// An order: epoch(records, epoch) has the places of an epoch, the same for the same arguments. It throws
/// std::invalid_argument if records or a field is out of range. Epochs count from 0.
template <class O> concept record_order = requires(O const order, std::int64_t n) {
  { order.epoch(n, n) } -> epoch_places;
};

namespace detail {

/// The limit of records and places.
inline constexpr std::int64_t most_examples = std::int64_t{1} << 48;

inline void require_records(char const* who, std::int64_t records, std::int64_t epoch) {
  require(records >= 0 && records <= most_examples, who, "records", "in [0, 2^48]", records);
  require(epoch >= 0, who, "epoch", "at least 0", epoch);
}

/// 64 random bits of an epoch and an index. `use` tells apart what orders draw.
DESCENT_HD inline std::uint64_t order_bits(std::uint64_t seed, std::int64_t epoch, std::int64_t index, int use) {
  random_words const r = random_at(seed, epoch, index, 240 + use);
  return std::uint64_t(r.word[1]) << 32 | r.word[0];
}
/// In [0, 1), a multiple of 2^-53.
DESCENT_HD inline double unit_of(std::uint64_t bits) { return double(bits >> 11) * 0x1p-53; }

}  // namespace detail

/// A permutation of [0, n) without a table: any place in constant time and no memory (Black & Rogaway 2002, "Ciphers
/// with arbitrary finite domains", section 4).
///
///     (l, r) <- (r, l ^ F(r, k))       eight rounds on the bits of n - 1, repeated until below n
///
/// That takes fewer than two passes on average. The bijection depends on the key; not every permutation has one. Up to
/// 16 records, where halves of one or two bits would favour some orders, it is a table of 16 fields of 4 bits instead
/// (Fisher & Yates; Durstenfeld 1964, algorithm 235), and all orders are equally likely.
class permutation {
 public:
  permutation() = default;
  /// n in [0, 2^62], not checked.
  DESCENT_HD permutation(std::int64_t n, std::uint64_t seed, std::int64_t epoch) : n_(n) {
    if (n <= most_in_table) {
      fill_table(seed, epoch);
      return;
    }
    int bits = 0;
    while (n > std::int64_t{1} << bits) ++bits;
    low_ = bits / 2, high_ = bits - low_;
    for (int i = 0; i < rounds / 2; ++i) {
      std::uint64_t const k = detail::order_bits(seed, epoch, i, 0);
      keys_[2 * i] = std::uint32_t(k), keys_[2 * i + 1] = std::uint32_t(k >> 32);
    }
  }

  DESCENT_HD std::int64_t size() const { return n_; }  ///< n
  /// The record at a place in [0, n).
  DESCENT_HD std::int64_t operator[](std::int64_t place) const {
    if (n_ <= most_in_table) return std::int64_t(table() >> 4 * place & 15);
    auto x = std::uint64_t(place);
    do x = pass(x);
    while (x >= std::uint64_t(n_));
    return std::int64_t(x);
  }

 private:
  static constexpr int rounds = 8;
  static constexpr std::int64_t most_in_table = 16;

  /// The k-th of n records changes places with one of the first k + 1, drawn from 32 bits: the excess of a record is
  /// below 2^-28.
  DESCENT_HD void fill_table(std::uint64_t seed, std::int64_t epoch) {
    std::uint64_t all = 0xFEDCBA9876543210u;
    for (std::int64_t k = n_ - 1; k > 0; --k) {
      std::uint64_t const bits = detail::order_bits(seed, epoch, k, 0) & 0xFFFFFFFFu;
      std::uint64_t const with = bits * std::uint64_t(k + 1) >> 32;
      std::uint64_t const changed = (all >> 4 * k ^ all >> 4 * with) & 15;
      all ^= changed << 4 * k | changed << 4 * with;
    }
    keys_[0] = std::uint32_t(all), keys_[1] = std::uint32_t(all >> 32);
  }
  DESCENT_HD std::uint64_t table() const { return std::uint64_t(keys_[1]) << 32 | keys_[0]; }

  DESCENT_HD std::uint64_t pass(std::uint64_t x) const {
    // The halves have high_ and low_ bits, and change places in each round: after eight they are as before.
    int left = high_, right = low_;
    std::uint64_t l = x >> low_, r = x & ((std::uint64_t{1} << low_) - 1);
    for (int i = 0; i < rounds; ++i) {
      std::uint64_t const next = (l ^ mixed(r, keys_[i])) & ((std::uint64_t{1} << left) - 1);
      l = r, r = next;
      int const bits = left;
      left = right, right = bits;
    }
    return l << low_ | r;
  }
  /// A hash of 32 bits: the finalizer of MurmurHash3 with the key before and after it.
  DESCENT_HD static std::uint64_t mixed(std::uint64_t r, std::uint32_t key) {
    std::uint32_t h = std::uint32_t(r) ^ key;
    h = (h ^ h >> 16) * 0x85EBCA6B;
    h = (h ^ h >> 13) * 0xC2B2AE35;
    return (h ^ h >> 16) + key;
  }

  std::int64_t n_ = 0;
  int high_ = 0, low_ = 0;
  std::uint32_t keys_[rounds] = {};
};

/// Record i at place i.
struct sequential {
  /// The places of an epoch.
  struct places {
    std::int64_t count;  ///< of records
    DESCENT_HD std::int64_t size() const { return count; }  ///< of the data set
    DESCENT_HD std::int64_t operator[](std::int64_t place) const { return place; }  ///< the place itself
  };

  /// All records, also on a device. Checks nothing.
  DESCENT_HD places at(std::int64_t records, std::int64_t) const { return {records}; }
  /// All records.
  places epoch(std::int64_t records, std::int64_t epoch) const {
    detail::require_records("sequential", records, epoch);
    return at(records, epoch);
  }
};

/// Every record once, in another order in each epoch: a permutation without a table.
struct shuffled {
  std::uint64_t seed = 0;  ///< the same on all ranks

  /// All records in the order of this epoch, also on a device. Checks nothing.
  DESCENT_HD permutation at(std::int64_t records, std::int64_t epoch) const { return {records, seed, epoch}; }
  /// All records in the order of this epoch.
  permutation epoch(std::int64_t records, std::int64_t epoch) const {
    detail::require_records("shuffled", records, epoch);
    return at(records, epoch);
  }
};

/// Places that are a list of records.
class listed {
 public:
  explicit listed(std::vector<std::int64_t> records) : records_(std::move(records)) {}

  std::int64_t size() const { return std::int64_t(records_.size()); }  ///< of the list
  std::int64_t operator[](std::int64_t place) const { return records_[std::size_t(place)]; }  ///< from the list

 private:
  std::vector<std::int64_t> records_;
};

/// Some of the records, in another order in each epoch, as PyTorch's SubsetRandomSampler.
struct subset_random {
  std::vector<std::int64_t> records;  ///< their numbers; duplicates stay
  std::uint64_t seed = 0;  ///< the same on all ranks

  /// The places of an epoch. They refer to the list of the order, which must outlive them.
  struct places {
    permutation order;  ///< of the list
    std::int64_t const* list;  ///< the records
    std::int64_t size() const { return order.size(); }  ///< of the list
    std::int64_t operator[](std::int64_t place) const { return list[order[place]]; }  ///< from the list
  };

  /// The list in the order of this epoch. `all`: the number of records.
  places epoch(std::int64_t all, std::int64_t epoch) const {
    detail::require_records("subset_random", all, epoch);
    std::string const range = "in [0, " + std::to_string(all) + ")";
    for (std::size_t i = 0; i < records.size(); ++i)
      detail::require_entry(records[i] >= 0 && records[i] < all, "subset_random", "records", i, range.c_str(),
                            records[i]);
    return {permutation(std::int64_t(records.size()), seed, epoch), records.data()};
  }
};

/// An order of your own: record(epoch, place) for each place in [0, count), or for as many places as there are records
/// if count is -1. It must be a function of its arguments that any thread may call. Its records are checked where they
/// are read.
template <class F> struct ordered_by {
  F record;  ///< std::int64_t record(std::int64_t epoch, std::int64_t place)
  std::int64_t count = -1;  ///< places of an epoch

  /// The places of an epoch.
  struct places {
    F record;  ///< that of the order
    std::int64_t count;  ///< of places
    std::int64_t number;  ///< of the epoch
    std::int64_t size() const { return count; }  ///< of places
    std::int64_t operator[](std::int64_t place) const { return std::int64_t(record(number, place)); }  ///< the record
  };

  /// The places of this epoch.
  places epoch(std::int64_t records, std::int64_t epoch) const {
    detail::require_records("ordered_by", records, epoch);
    detail::require(count >= -1 && count <= detail::most_examples, "ordered_by", "count", "-1 or in [0, 2^48]", count);
    return {record, count < 0 ? records : count, epoch};
  }
};
template <class F> ordered_by(F) -> ordered_by<F>;
template <class F> ordered_by(F, std::int64_t) -> ordered_by<F>;

}  // namespace descent
