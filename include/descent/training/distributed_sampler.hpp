// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// Which examples of a data set each rank sees: pure functions of their arguments, the same on every rank.
namespace descent {

namespace detail {
/// Of an order, which is in memory.
inline constexpr std::int64_t most_examples = std::int64_t{1} << 48;
}  // namespace detail

/// 0 to n - 1 in the order of torch.randperm(n) with a CPU generator of this seed: Fisher and Yates with MT19937, where
/// n is so large that the remainder of 32 bits would not be uniform inside out and with 64.
inline std::vector<std::int64_t> random_order(std::int64_t n, std::uint64_t seed) {
  detail::require(n >= 0 && n <= detail::most_examples, "random_order", "n", "in [0, 2^48]", n);
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  auto const exchange = [&](std::int64_t i, std::int64_t j) { std::swap(order[std::size_t(i)], order[std::size_t(j)]); };
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

/// What a rank does with the examples that do not divide by the ranks.
enum class uneven { pad, drop };  ///< some twice, from the beginning of the order; or the last ones not at all

/// From where each rank draws.
enum class sampling {
  parts,  ///< each example is one rank's, as torch.utils.data.DistributedSampler: rank, rank + ranks, ... of the order
  whole   ///< each rank draws its number from all of them in an order of its own, as with one sampler for each rank
};

/// The examples of one rank in an epoch. Every rank has count() of them, so every rank has as many batches. With parts
/// the indices are those of PyTorch's DistributedSampler with shuffle, seed and set_epoch(epoch).
///
/// `consumed` leaves out examples that all ranks together have seen of this epoch, in its order, and divides what is
/// left anew, as Horovod's ElasticSampler: after a restart in the middle, also with another number of ranks.
struct distributed_sampler {
  std::int64_t size = 0;  ///< of the data set
  int ranks = 1, rank = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;
  descent::uneven uneven = descent::uneven::pad;
  descent::sampling sampling = descent::sampling::parts;

  /// The examples of each rank. Throws as indices().
  std::int64_t count(std::int64_t consumed = 0) const {
    check(consumed);
    return parts_of(size - consumed, ranks, uneven == descent::uneven::drop);
  }

  /// The batches of each rank; the last may be smaller, or is left out.
  std::int64_t batches(std::int64_t batch, bool drop_last_batch = false, std::int64_t consumed = 0) const {
    detail::require(batch >= 1, "distributed_sampler", "the batch", "at least 1", batch);
    return parts_of(count(consumed), batch, drop_last_batch);
  }

  /// Throws std::invalid_argument on values out of range.
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

  void check() const {
    detail::require(size >= 0 && size <= detail::most_examples, "distributed_sampler", "size", "in [0, 2^48]", size);
    detail::require(ranks >= 1, "distributed_sampler", "ranks", "at least 1", ranks);
    detail::require(rank >= 0 && rank < ranks, "distributed_sampler", "rank",
                    ("in [0, " + std::to_string(ranks) + ")").c_str(), rank);
    detail::require(shuffle || sampling == descent::sampling::parts, "distributed_sampler", "shuffle",
                    "true where each rank draws from the whole", shuffle);
  }

 private:
  void check(std::int64_t consumed) const {
    check();
    detail::require(consumed >= 0 && consumed <= size, "distributed_sampler", "consumed", "in [0, size]", consumed);
  }
  /// n / of, rounded down or up.
  static std::int64_t parts_of(std::int64_t n, std::int64_t of, bool down) { return n / of + (!down && n % of != 0); }
};

/// How many batches the ranks have that did not come from one sampler.
struct batch_counts {
  std::int64_t fewest, most;
  int rank_of_fewest;

  bool equal() const { return fewest == most; }
  /// For people: empty when they are equal.
  std::string warning() const {
    if (equal()) return {};
    return "ranks have " + std::to_string(fewest) + " to " + std::to_string(most) + " batches, rank " +
           std::to_string(rank_of_fewest) + " the fewest: stop all after that many, or repeat some";
  }
};
/// Waits for all ranks; the same on each.
template <class Comm> batch_counts count_batches(Comm& comm, std::int64_t mine) {
  std::vector<std::int64_t> all(std::size_t(comm.size()));
  comm.all_gather(reinterpret_cast<std::byte const*>(&mine), reinterpret_cast<std::byte*>(all.data()),
                  std::int64_t(sizeof mine));
  auto const [fewest, most] = std::minmax_element(all.begin(), all.end());
  return {*fewest, *most, int(fewest - all.begin())};
}

}  // namespace descent
