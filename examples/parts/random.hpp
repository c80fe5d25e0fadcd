// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace example {

/// Random numbers that are the same everywhere: the C++ standard fixes the output of std::mt19937_64 and std::seed_seq
/// to the bit, but leaves the distributions to each library.
class random_source {
 public:
  /// Streams of one seed are independent of each other.
  explicit random_source(std::uint64_t seed, std::uint32_t stream = 0) {
    std::seed_seq mixed{std::uint32_t(seed), std::uint32_t(seed >> 32), stream};
    engine_.seed(mixed);
  }

  /// Uniform in [from, to): the upper 53 bits of a draw are the fraction of a double.
  double uniform(double from, double to) { return from + (to - from) * (double(engine_() >> 11) * 0x1p-53); }

  /// Uniform in [0, n). Rejects draws below 2^64 mod n, which would favour small results.
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t draw = engine_();
    while (draw < (0 - n) % n) draw = engine_();
    return draw % n;
  }

  /// A Fisher-Yates shuffle of the current order.
  void shuffle(std::vector<std::int32_t>& order) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

/// 0, 1, ..., n - 1
inline std::vector<std::int32_t> in_order(std::size_t n) {
  std::vector<std::int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace example
