// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/comm/threads.hpp>
#include <descent/data/batches.hpp>
#include <descent/data/distributed_sampler.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// Which rank gets which example.

namespace ds = descent;

namespace {

/// The indices of all ranks, one rank after another.
std::vector<std::int64_t> of_all(ds::distributed_sampler s, std::int64_t epoch, std::int64_t consumed = 0) {
  std::vector<std::int64_t> all;
  for (s.rank = 0; s.rank < s.ranks; ++s.rank) {
    auto const mine = s.indices(epoch, consumed);
    CHECK(std::int64_t(mine.size()) == s.count(consumed));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

}  // namespace

TEST_CASE("indices are those of PyTorch's DistributedSampler") {
  std::ifstream file(test::tests_dir() + "/reference/values_sampler.txt");
  int cases = 0;
  for (std::string line, word; std::getline(file, line);) {
    std::istringstream in(line);
    if (!(in >> word) || word != "case") continue;
    INFO(line.substr(0, 60));
    ds::distributed_sampler s;
    std::int64_t epoch;
    bool drop;
    in >> s.size >> s.ranks >> s.rank >> s.shuffle >> s.seed >> epoch >> drop >> word;
    s.uneven = drop ? ds::uneven::drop : ds::uneven::pad;
    std::vector<std::int64_t> want;
    for (std::int64_t i; in >> i;) want.push_back(i);
    CHECK(s.indices(epoch) == want);
    ++cases;
  }
  CHECK(cases > 500);
}

TEST_CASE("parts: every example once, or at least once where padded; every rank as many; epochs differ") {
  for (std::int64_t size : {0, 1, 5, 64, 1001})
    for (int ranks : {1, 2, 3, 8}) {
      ds::distributed_sampler s{.size = size, .ranks = ranks, .seed = 4};
      auto padded = of_all(s, 1);
      CHECK(std::set(padded.begin(), padded.end()).size() == std::size_t(size));
      CHECK(std::int64_t(padded.size()) < size + ranks);
      s.uneven = ds::uneven::drop;
      auto dropped = of_all(s, 1);
      CHECK(std::set(dropped.begin(), dropped.end()).size() == dropped.size());
      CHECK(std::int64_t(dropped.size()) > size - ranks);
      if (size > 5) CHECK(of_all(s, 1) != of_all(s, 2));
    }
}

TEST_CASE("whole: each rank draws from all examples, in another order than the others") {
  ds::distributed_sampler s{.size = 1000, .ranks = 4, .sampling = ds::sampling::whole};
  std::set<std::vector<std::int64_t>> orders;
  for (s.rank = 0; s.rank < 4; ++s.rank) {
    auto const mine = s.indices(0);
    CHECK(mine.size() == 250);
    CHECK(std::set(mine.begin(), mine.end()).size() == 250);
    orders.insert(mine);
  }
  CHECK(orders.size() == 4);
}

TEST_CASE("consumed: the rest of an epoch is divided again, also over other ranks, and nothing is seen twice") {
  ds::distributed_sampler before{.size = 101, .ranks = 4, .seed = 9, .uneven = ds::uneven::drop};
  std::vector<std::int64_t> seen;
  for (before.rank = 0; before.rank < 4; ++before.rank) {
    auto const mine = before.indices(5);
    seen.insert(seen.end(), mine.begin(), mine.begin() + 10);  // 10 examples of each rank
  }
  for (int ranks : {1, 3, 4, 7}) {
    auto after = before;
    after.ranks = ranks;
    after.uneven = ds::uneven::pad;
    auto const left = of_all(after, 5, 40);
    std::set<std::int64_t> all(seen.begin(), seen.end());
    CHECK(all.size() == 40);
    for (std::int64_t i : left) CHECK(std::count(seen.begin(), seen.end(), i) == 0);
    all.insert(left.begin(), left.end());
    CHECK(all.size() == 101);
  }
}

TEST_CASE("batches: as many on every rank") {
  ds::distributed_sampler const s{.size = 103, .ranks = 4};
  CHECK(s.count() == 26);
  CHECK(s.batches(8) == 4);
  CHECK(s.batches(8, true) == 3);
  ds::comm::threads world{3};
  std::vector<std::string> said(3);
  std::vector<std::thread> team;
  for (int r = 0; r < 3; ++r)
    team.emplace_back([&, r] {
      auto comm = world.rank(r);
      auto const counts = ds::count_batches(comm, r == 1 ? 7 : 9);
      said[std::size_t(r)] = counts.warning();
    });
  for (auto& one : team) one.join();
  for (auto const& one : said)
    CHECK(one == "ranks have 7 to 9 batches, rank 1 the fewest: stop all ranks after that many, or repeat some");
}

TEST_CASE("bad input") {
  using sampler = ds::distributed_sampler;
  CHECK_THROWS_WITH_AS((sampler{.size = -1}.indices(0)), "distributed_sampler: size must be in [0, 2^48], is -1",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((sampler{.size = 4, .ranks = 0}.indices(0)),
                       "distributed_sampler: ranks must be at least 1, is 0", std::invalid_argument);
  CHECK_THROWS_WITH_AS((sampler{.size = 4, .ranks = 2, .rank = 2}.indices(0)),
                       "distributed_sampler: rank must be in [0, 2), is 2", std::invalid_argument);
  CHECK_THROWS_WITH_AS((sampler{.size = 4}.indices(0, 5)), "distributed_sampler: consumed must be in [0, size], is 5",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((sampler{.size = 4}.batches(0)), "distributed_sampler: the batch must be at least 1, is 0",
                       std::invalid_argument);
}
