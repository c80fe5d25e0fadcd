// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/data/order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// How the places of an epoch are cut into batches, and what each rank takes of a batch.
namespace descent {

/// What to do with the last batch of an epoch if it would be smaller than the others.
enum class last_batch {
  keep,  ///< it is smaller
  drop,  ///< it is left out
  pad    ///< it is filled from the beginning of the epoch
};

/// Places [first, first + count) of an epoch. With last_batch::pad they continue at its beginning.
struct batch_slice {
  std::int64_t first, count;  ///< the first place; how many there are

  /// The k-th place, in an epoch of so many places, at least 1.
  std::int64_t place(std::int64_t k, std::int64_t places) const {
    return first + k < places ? first + k : (first + k) % places;  // a division takes as long as to copy a record
  }
};

/// Global batches: `size` is the number of records of all ranks together, so the same batches, and with them the same
/// gradients, come from any number of ranks. Ranks take parts of a batch that follow each other and differ by at most
/// one record; a rank's part may be empty, and every rank has the same number of batches. The mean over a batch needs
/// the weight slice.count of each rank, see optimizer::step(weight).
struct batches {
  std::int64_t size = 1;                    ///< records of a batch, of all ranks together; at least 1
  last_batch last = last_batch::keep;  ///< what happens to a last batch that is smaller

  /// The number of batches in an epoch of so many places. Throws std::invalid_argument if an argument or a field is out
  /// of range.
  std::int64_t count(std::int64_t places) const {
    check(places);
    return places / size + (last != last_batch::drop && places % size != 0);
  }
  /// A rank's part of batch b, from 0 on. Throws std::invalid_argument if an argument or a field is out of range.
  batch_slice slice(std::int64_t b, std::int64_t places, int rank = 0, int ranks = 1) const {
    std::int64_t const all = count(places);
    if (b < 0 || b >= all) detail::refuse("batches", "the batch", ("in [0, " + std::to_string(all) + ")").c_str(), b);
    detail::require(ranks >= 1, "batches", "ranks", "at least 1", ranks);
    if (rank < 0 || rank >= ranks)
      detail::refuse("batches", "rank", ("in [0, " + std::to_string(ranks) + ")").c_str(), rank);
    std::int64_t const begin = b * size, n = last == last_batch::pad ? size : std::min(size, places - begin);
    std::int64_t const first = part(n, rank, ranks);
    return {begin + first, part(n, rank + 1, ranks) - first};
  }

 private:
  /// Where the part of a rank begins: n rank / ranks, without an overflow.
  static std::int64_t part(std::int64_t n, std::int64_t rank, std::int64_t ranks) {
    return n / ranks * rank + n % ranks * rank / ranks;
  }
  void check(std::int64_t places) const {
    detail::require(size >= 1 && size <= detail::most_examples, "batches", "size", "in [1, 2^48]", size);
    detail::require(places >= 0 && places <= detail::most_examples, "batches", "places", "in [0, 2^48]", places);
  }
};

/// How many batches the ranks have, if these do not come from one order.
struct batch_counts {
  std::int64_t fewest, most;  ///< batches of a rank
  int rank_of_fewest;  ///< the first rank with the fewest

  /// Whether all ranks have the same number.
  bool equal() const { return fewest == most; }
  /// A text for the user, empty if all are equal.
  std::string warning() const {
    if (equal()) return {};
    return "ranks have " + std::to_string(fewest) + " to " + std::to_string(most) + " batches, rank " +
           std::to_string(rank_of_fewest) + " the fewest: stop all ranks after that many, or repeat some";
  }
};
/// Gathers the number of batches of all ranks. Waits for all ranks and returns the same on each.
template <class Comm> batch_counts count_batches(Comm& comm, std::int64_t mine) {
  std::vector<std::int64_t> all(std::size_t(comm.size()));
  comm.all_gather(reinterpret_cast<std::byte const*>(&mine), reinterpret_cast<std::byte*>(all.data()),
                  std::int64_t(sizeof mine));
  auto const [fewest, most] = std::minmax_element(all.begin(), all.end());
  return {*fewest, *most, int(fewest - all.begin())};
}

}  // namespace descent
