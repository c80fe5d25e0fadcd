// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Batches of an epoch, and what ranks take of them.
#include <descent/data/batches.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

/// The places of all batches, rank after rank.
std::vector<std::vector<std::int64_t>> all_of(ds::batches const& of, std::int64_t places, int ranks) {
  std::vector<std::vector<std::int64_t>> all(std::size_t(of.count(places)));
  for (std::size_t b = 0; b < all.size(); ++b)
    for (int rank = 0; rank < ranks; ++rank) {
      ds::batch_slice const s = of.slice(std::int64_t(b), places, rank, ranks);
      for (std::int64_t k = 0; k < s.count; ++k) all[b].push_back(s.place(k, places));
    }
  return all;
}

}  // namespace

TEST_CASE("batches: the same records in the same order for any number of ranks, whose parts differ by at most one") {
  for (auto const last : {ds::last_batch::keep, ds::last_batch::drop, ds::last_batch::pad})
    for (std::int64_t const places : {0, 1, 6, 7, 8, 100})
      for (std::int64_t const size : {1, 3, 7, 16}) {
        ds::batches const of{.size = size, .last = last};
        auto const whole = all_of(of, places, 1);
        for (std::size_t b = 0; b < whole.size(); ++b)
          for (std::size_t k = 0; k < whole[b].size(); ++k)
            CHECK(whole[b][k] == (std::int64_t(b) * size + std::int64_t(k)) % places);
        for (int const ranks : {2, 3, 8}) {
          CHECK(all_of(of, places, ranks) == whole);
          for (std::int64_t b = 0; b < of.count(places); ++b) {
            std::int64_t least = size, most = 0;
            for (int rank = 0; rank < ranks; ++rank) {
              std::int64_t const n = of.slice(b, places, rank, ranks).count;
              least = std::min(least, n), most = std::max(most, n);
            }
            CHECK(most - least <= 1);
          }
        }
      }
}

TEST_CASE("batches: the last one is kept, dropped or padded") {
  CHECK(all_of({.size = 3}, 7, 2).back() == std::vector<std::int64_t>{6});
  CHECK(all_of({.size = 3, .last = ds::last_batch::drop}, 7, 2).back() == std::vector<std::int64_t>{3, 4, 5});
  CHECK(all_of({.size = 3, .last = ds::last_batch::pad}, 7, 2).back() == std::vector<std::int64_t>{6, 0, 1});
  CHECK(all_of({.size = 5, .last = ds::last_batch::pad}, 2, 2) ==
        std::vector<std::vector<std::int64_t>>{{0, 1, 0, 1, 0}});
  CHECK(ds::batches{.size = 5, .last = ds::last_batch::drop}.count(4) == 0);
}

TEST_CASE("batches of more than 2^31 records") {
  std::int64_t const places = std::int64_t{1} << 47, size = (std::int64_t{1} << 40) + 1;
  ds::batches const of{.size = size};
  CHECK(of.count(places) == 128);
  auto const s = of.slice(127, places, 6, 7);
  CHECK(s.first + s.count == places);
  CHECK(of.slice(5, places, 3, 1 << 30).count == size / (1 << 30));
}

TEST_CASE("batches: what is out of range is refused") {
  ds::batches const of{.size = 4};
  CHECK(message([&] { static_cast<void>(of.count(-1)); }) == "batches: places must be in [0, 2^48], is -1");
  CHECK(message([] { static_cast<void>(ds::batches{.size = 0}.count(3)); }) ==
        "batches: size must be in [1, 2^48], is 0");
  CHECK(message([&] { static_cast<void>(of.slice(3, 12)); }) == "batches: the batch must be in [0, 3), is 3");
  CHECK(message([&] { static_cast<void>(of.slice(0, 12, 2, 2)); }) == "batches: rank must be in [0, 2), is 2");
  CHECK(message([&] { static_cast<void>(of.slice(0, 12, 0, 0)); }) == "batches: ranks must be at least 1, is 0");
}
