// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Orders of records: each is a function of seed, epoch and place, and has the distribution that it says.
#include <descent/data/distributed_sampler.hpp>
#include <descent/data/order.hpp>
#include <descent/data/weighted.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

std::vector<std::int64_t> all_of(ds::epoch_places auto const& places) {
  std::vector<std::int64_t> all;
  for (std::int64_t k = 0; k < places.size(); ++k) all.push_back(places[k]);
  return all;
}
std::vector<std::int64_t> counted_to(std::int64_t n) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}
/// Pearson's chi-square of counts against expected numbers, less its mean, in standard deviations.
double excess(std::vector<double> const& counts, std::vector<double> const& expected) {
  double sum = 0;
  int cells = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (expected[i] > 0) sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i], ++cells;
  return (sum - (cells - 1)) / std::sqrt(2.0 * (cells - 1));
}

}  // namespace

TEST_CASE("a permutation has every record once, for any number of them") {
  for (std::int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 1000, 4096, 4097, 70001}) {
    auto all = all_of(ds::shuffled{.seed = 5}.epoch(n, 2));
    std::ranges::sort(all);
    CHECK(all == counted_to(n));
  }
}

TEST_CASE("a permutation of more than 2^31 records: places far apart, each record in range and none twice") {
  std::int64_t const n = (std::int64_t{1} << 47) + 12345;
  auto const places = ds::shuffled{}.epoch(n, 0);
  std::vector<std::int64_t> some;
  for (std::int64_t k = 0; k < 2000; ++k) some.push_back(places[k < 1000 ? k : n - 1 - (k - 1000)]);
  CHECK(std::ranges::all_of(some, [&](std::int64_t r) { return r >= 0 && r < n; }));
  CHECK(std::ranges::count_if(some, [&](std::int64_t r) { return r >= n / 2; }) > 900);
  std::ranges::sort(some);
  CHECK(std::ranges::adjacent_find(some) == some.end());
}

TEST_CASE("a permutation puts each record at each place equally often, and pairs, too") {
  constexpr std::int64_t n = 13, epochs = 13 * 1200;
  std::vector<double> at(n * n), behind(n * n), wanted(n * n, double(epochs) / n), pairs(n * n);
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    auto const all = all_of(ds::shuffled{.seed = 77}.epoch(n, epoch));
    for (std::int64_t k = 0; k < n; ++k) ++at[std::size_t(k * n + all[std::size_t(k)])];
    ++behind[std::size_t(all[4] * n + all[5])];
  }
  for (std::int64_t a = 0; a < n; ++a)
    for (std::int64_t b = 0; b < n; ++b) pairs[std::size_t(a * n + b)] = a == b ? 0 : double(epochs) / (n * (n - 1));
  CHECK(std::abs(excess(at, wanted)) < 5);
  CHECK(std::abs(excess(behind, pairs)) < 5);
  for (std::int64_t a = 0; a < n; ++a) CHECK(behind[std::size_t(a * n + a)] == 0);
}

TEST_CASE("of few records all orders are equally likely, and of more all ordered pairs of places") {
  for (std::int64_t n = 2; n <= 24; ++n) {
    INFO(n << " records");
    std::int64_t factorial = 1;
    for (std::int64_t k = 2; k <= n && n <= 6; ++k) factorial *= k;
    std::int64_t const epochs = 40 * std::max<std::int64_t>(n * (n - 1), 250);
    auto const cells = std::size_t(n * n), codes = std::size_t(factorial);
    std::vector<double> wanted(cells), first(cells), last(cells);
    std::vector<double> orders(codes), each(codes, double(epochs) / double(factorial));
    for (std::int64_t a = 0; a < n; ++a)
      for (std::int64_t b = 0; b < n; ++b)
        wanted[std::size_t(a * n + b)] = a == b ? 0 : double(epochs) / double(n * (n - 1));
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
      auto const all = all_of(ds::shuffled{.seed = 5}.epoch(n, epoch));
      ++first[std::size_t(all[0] * n + all[1])];
      ++last[std::size_t(all[std::size_t(n - 1)] * n + all[std::size_t(n / 2 - (n == 2))])];
      std::int64_t code = 0;  // in the factorial number system
      for (std::int64_t k = 0; k < n && n <= 6; ++k)
        code =
            code * (n - k) + std::count_if(all.begin() + k, all.end(), [&](auto r) { return r < all[std::size_t(k)]; });
      ++orders[std::size_t(code)];
    }
    CHECK(std::abs(excess(first, wanted)) < 5);
    CHECK(std::abs(excess(last, wanted)) < 5);
    if (n > 2 && n <= 6) CHECK(std::abs(excess(orders, each)) < 5);
  }
}

TEST_CASE("orders depend on seed and epoch, and on nothing else") {
  auto const order = [](std::uint64_t seed, std::int64_t epoch) {
    return all_of(ds::shuffled{.seed = seed}.epoch(100, epoch));
  };
  CHECK(order(1, 2) == order(1, 2));
  CHECK(order(1, 2) != order(1, 3));
  CHECK(order(1, 2) != order(2, 2));
  CHECK(order(1, 2) != order(2, 1));
  static_assert(sizeof(ds::permutation) == 48);
  CHECK(all_of(ds::sequential{}.epoch(5, 9)) == counted_to(5));
  CHECK(all_of(ds::torch_order{.seed = 3}.epoch(50, 4)) == ds::random_order(50, 7));
}

TEST_CASE("subset_random has the records of its list, in another order in each epoch") {
  ds::subset_random const some{{4, 9, 9, 0, 7, 3, 8, 5}, 6};
  auto one = all_of(some.epoch(10, 0)), two = all_of(some.epoch(10, 1)), sorted = some.records;
  CHECK(one != two);
  std::ranges::sort(one), std::ranges::sort(two), std::ranges::sort(sorted);
  CHECK(one == sorted);
  CHECK(two == sorted);
}

TEST_CASE("weighted draws follow the weights, whatever their size, and records of weight 0 never come") {
  for (double const scale : {1.0, 1e300, 1e-300}) {
    std::vector<double> const weights{scale, 0, 3 * scale, 0.25 * scale, 5 * scale, 0};
    constexpr double draws = 50000;
    std::vector<double> counts(6), expected(6);
    for (std::int64_t r : all_of(ds::weighted{weights, std::int64_t(draws), 11}.epoch(6, 1))) ++counts[std::size_t(r)];
    for (std::size_t i = 0; i < 6; ++i) expected[i] = draws * (weights[i] / scale) / 9.25;
    CHECK(std::abs(excess(counts, expected)) < 5);
    CHECK(counts[1] == 0);
    CHECK(counts[5] == 0);
  }
}

TEST_CASE("weighted_once draws in proportion to the weights that are left") {
  // The first two of three records: P(a, b) = w_a / sum * w_b / (sum - w_a).
  std::vector<double> const w{1, 2, 5};
  constexpr std::int64_t epochs = 20000;
  std::vector<double> counts(9), expected(9);
  ds::weighted_once const order{w, 2, 4};
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    auto const all = order.epoch(3, epoch);
    ++counts[std::size_t(all[0] * 3 + all[1])];
  }
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < 3; ++b)
      if (a != b) expected[a * 3 + b] = epochs * w[a] / 8 * w[b] / (8 - w[a]);
  CHECK(std::abs(excess(counts, expected)) < 5);
  CHECK(counts[0] + counts[4] + counts[8] == 0);
  auto all = all_of(ds::weighted_once{{1e-300, 1e300, 0, 1}, 3}.epoch(4, 0));
  CHECK(all == std::vector<std::int64_t>{1, 3, 0});
}

TEST_CASE("an order of the user's own") {
  ds::ordered_by const backwards{[](std::int64_t epoch, std::int64_t place) { return 9 - place + epoch; }};
  CHECK(all_of(backwards.epoch(10, 0)).front() == 9);
  CHECK(all_of(ds::ordered_by{[](std::int64_t, std::int64_t k) { return k % 2; }, 5}.epoch(2, 0)) ==
        std::vector<std::int64_t>{0, 1, 0, 1, 0});
  static_assert(ds::record_order<decltype(backwards)> && ds::record_order<ds::weighted>);
}

TEST_CASE("no records, or no draws") {
  CHECK(all_of(ds::weighted{}.epoch(0, 0)).empty());
  CHECK(all_of(ds::weighted{{0, 0}}.epoch(2, 0)).empty());
  CHECK(all_of(ds::weighted_once{}.epoch(0, 0)).empty());
  CHECK(all_of(ds::subset_random{}.epoch(3, 0)).empty());
  CHECK(all_of(ds::torch_order{}.epoch(0, 0)).empty());
  CHECK(all_of(ds::weighted{{5}, 3}.epoch(1, 0)) == std::vector<std::int64_t>{0, 0, 0});
}

TEST_CASE("what is out of range is refused") {
  double const nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  auto const why = [](ds::record_order auto const& order, std::int64_t records, std::int64_t epoch = 0) {
    return message([&] { static_cast<void>(order.epoch(records, epoch)); });
  };
  CHECK(why(ds::sequential{}, -1) == "sequential: records must be in [0, 2^48], is -1");
  CHECK(why(ds::shuffled{}, (std::int64_t{1} << 48) + 1) ==
        "shuffled: records must be in [0, 2^48], is 281474976710657");
  CHECK(why(ds::torch_order{}, 5, -1) == "torch_order: epoch must be at least 0, is -1");
  CHECK(why(ds::subset_random{{0, 5}}, 5) == "subset_random: records[1] must be in [0, 5), is 5");
  CHECK(why(ds::weighted{{1, 2}, 3}, 3) == "weighted: the number of weights must be that of the records, 3, is 2");
  CHECK(why(ds::weighted{{1, nan}, 3}, 2) == "weighted: weights[1] must be finite and at least 0, is nan");
  CHECK(why(ds::weighted{{infinity}, 3}, 1) == "weighted: weights[0] must be finite and at least 0, is inf");
  CHECK(why(ds::weighted{{1, -1}, 3}, 2) == "weighted: weights[1] must be finite and at least 0, is -1");
  CHECK(why(ds::weighted{{0, 0}, 3}, 2) == "weighted: the number of weights above 0 must be at least 1, is 0");
  CHECK(why(ds::weighted{{1}, -1}, 1) == "weighted: draws must be in [0, 2^48], is -1");
  CHECK(why(ds::weighted_once{{1, 0, 1}, 3}, 3) ==
        "weighted_once: the number of weights above 0 must be at least 3, is 2");
  CHECK(why(ds::weighted_once{{1, 1}, 3}, 2) == "weighted_once: draws must be in [0, records], is 3");
  CHECK(why(ds::ordered_by{[](std::int64_t, std::int64_t k) { return k; }, -2}, 3) ==
        "ordered_by: count must be -1 or in [0, 2^48], is -2");
}
