// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/data/order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// PyTorch's orders, to the index.
namespace descent {

/// 0 to n - 1 in the order of torch.randperm(n) with a CPU generator of this seed: a Fisher-Yates shuffle with MT19937.
/// For large n, where a 32-bit remainder would not be uniform, it is the inside-out variant with 64 bits.
inline std::vector<std::int64_t> random_order(std::int64_t n, std::uint64_t seed) {
  detail::require(n >= 0 && n <= detail::most_examples, "random_order", "n", "in [0, 2^48]", n);
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  auto const exchange = [&](std::int64_t i, std::int64_t j) {
    std::swap(order[std::size_t(i)], order[std::size_t(j)]);
  };
  if (n < std::int64_t{std::numeric_limits<std::uint32_t>::max() / 20}) {
    for (std::int64_t i = 0; i < n - 1; ++i) exchange(i, i + std::int64_t(generator() % std::uint64_t(n - i)));
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      std::uint64_t const high = generator(), low = generator();
      exchange(i, std::int64_t((high << 32 | low) % std::uint64_t(i + 1)));
    }
  }
  return order;
}

/// The order of torch.randperm(records) with a CPU generator of seed + epoch, as PyTorch's DistributedSampler has it
/// after set_epoch(epoch). Makes a list of 8 bytes per record for each epoch.
struct torch_order {
  std::uint64_t seed = 0;  ///< the same on all ranks

  /// All records in the order of this epoch.
  listed epoch(std::int64_t records, std::int64_t epoch) const {
    detail::require_records("torch_order", records, epoch);
    return listed(random_order(records, seed + std::uint64_t(epoch)));
  }
};

/// What to do if the number of examples is not a multiple of the number of ranks.
enum class uneven { pad, drop };  ///< repeat some from the beginning of the order, or drop the last ones

/// What each rank draws from.
enum class sampling {
  parts,  ///< each example goes to one rank: rank, rank + ranks, ... of the order, as in PyTorch's sampler
  whole  ///< each rank draws from all examples in its own order, as with one sampler per rank
};

/// The examples of one rank in an epoch. Every rank has count() examples, hence the same number of batches. With
/// sampling::parts the indices are those of PyTorch's DistributedSampler with shuffle, seed and set_epoch(epoch).
///
/// `consumed` is the number of examples of this epoch that the ranks together have already seen. They are left out and
/// the rest is divided, as in Horovod's ElasticSampler: for a restart within an epoch, also with another rank count.
///
/// It has no communicator and compares nothing: with another size, seed or `consumed` on one rank, some examples are
/// never seen and others twice. A loader with a communicator compares, and takes `torch_order` for all ranks.
struct distributed_sampler {
  std::int64_t size = 0;  ///< examples in the data set
  int ranks = 1, rank = 0;  ///< at least 1 rank; rank in [0, ranks)
  bool shuffle = true;  ///< a new order in each epoch, of the seed and the epoch; else that of the data set
  std::uint64_t seed = 0;  ///< the same on all ranks
  descent::uneven uneven = descent::uneven::pad;  ///< for examples that do not divide evenly
  descent::sampling sampling = descent::sampling::parts;  ///< whole needs shuffle

  /// The number of examples of each rank. Throws like indices().
  std::int64_t count(std::int64_t consumed = 0) const {
    check(consumed);
    return parts_of(size - consumed, ranks, uneven == descent::uneven::drop);
  }

  /// The number of batches of each rank. The last one may be smaller, or is left out.
  std::int64_t batches(std::int64_t batch, bool drop_last_batch = false, std::int64_t consumed = 0) const {
    detail::require(batch >= 1, "distributed_sampler", "the batch", "at least 1", batch);
    return parts_of(count(consumed), batch, drop_last_batch);
  }

  /// The indices of this rank's examples. Throws std::invalid_argument if a field or argument is out of range.
  std::vector<std::int64_t> indices(std::int64_t epoch, std::int64_t consumed = 0) const {
    check(consumed);
    bool const parts = sampling == descent::sampling::parts;
    std::uint64_t const own = parts ? 0 : std::uint64_t(rank) << 16;  // far from the seeds of the next epochs
    std::vector<std::int64_t> order;
    if (shuffle) {
      order = random_order(size, seed + std::uint64_t(epoch) + own);
    } else {
      order.resize(std::size_t(size));
      std::iota(order.begin(), order.end(), std::int64_t{0});
    }
    order.erase(order.begin(), order.begin() + consumed);
    std::vector<std::int64_t> mine(std::size_t(count(consumed)));
    std::int64_t const first = parts ? rank : 0, stride = parts ? ranks : 1;
    for (std::size_t i = 0; i < mine.size(); ++i)
      mine[i] = order[(std::size_t(first) + i * std::size_t(stride)) % order.size()];
    return mine;
  }

  /// The same as an order, for a loader whose batches are those of this rank alone. Throws like indices(), and unless
  /// there are `size` records.
  listed epoch(std::int64_t records, std::int64_t epoch) const {
    detail::require(records == size, "distributed_sampler", "the number of records",
                    ("size, " + std::to_string(size)).c_str(), records);
    return listed(indices(epoch));
  }

  void check() const {
    detail::require(size >= 0 && size <= detail::most_examples, "distributed_sampler", "size", "in [0, 2^48]", size);
    detail::require(ranks >= 1, "distributed_sampler", "ranks", "at least 1", ranks);
    detail::require(rank >= 0 && rank < ranks, "distributed_sampler", "rank",
                    ("in [0, " + std::to_string(ranks) + ")").c_str(), rank);
    detail::require(shuffle || sampling == descent::sampling::parts, "distributed_sampler", "shuffle",
                    "true if each rank draws from the whole data set", shuffle);
  }

 private:
  void check(std::int64_t consumed) const {
    check();
    detail::require(consumed >= 0 && consumed <= size, "distributed_sampler", "consumed", "in [0, size]", consumed);
  }
  /// n / of, rounded down or up.
  static std::int64_t parts_of(std::int64_t n, std::int64_t of, bool down) { return n / of + (!down && n % of != 0); }
};

}  // namespace descent
