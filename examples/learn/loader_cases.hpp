// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/timeline.hpp"

#include <descent/data/loader.hpp>
#include <descent/data/sources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// Orders, a loader, and a simulation of its threads, with few enough records to be printed.
namespace example::learn {

namespace ds = descent;

/// An epoch of 15 records in order, a line for each of three ranks.
void print_epoch(int epoch, auto const& order, auto const& rank_of) {
  auto const places = order.epoch(15, epoch);
  for (int rank = 0; rank < 3; ++rank) {
    std::printf("   epoch %d, rank %d:", epoch, rank);
    for (std::int64_t k = 0; k < 15; ++k) rank_of(k) == rank ? std::printf(" %2d", int(places[k])) : std::printf("  .");
    std::puts("");
  }
}

/// How many pairs of 240 records were ever in one batch of 8, in 20 epochs.
inline std::size_t companions(bool reshuffle) {
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (int e = 0; e < 20; ++e) {
    auto const order = ds::shuffled{.seed = 1}.epoch(240, reshuffle ? e : 0);
    for (std::int64_t a = 0; a < 240; ++a)
      for (std::int64_t b = a + 1; b < (a / 8 + 1) * 8; ++b) pairs.insert(std::minmax({order[a], order[b]}));
  }
  return pairs.size();
}

/// The records of some batches of 5, from a position on, with so many worker threads.
inline std::string records(int count, ds::loader_position from, int threads) {
  std::vector<int> numbers(15);
  std::iota(numbers.begin(), numbers.end(), 0);
  ds::loader data{ds::in_memory{ds::column{ds::field<"number", int>{}, numbers}}, ds::batches{.size = 5},
                  ds::shuffled{.seed = 1}, ds::workers{.threads = threads}};
  data.seek(from);
  std::string text;
  for (int k = 0; k < count; ++k) {
    auto const batch = data.next();
    for (int const n : batch.template get<"number">()) text += (n < 10 ? "  " : " ") + std::to_string(n);
    text += k + 1 < count ? " |" : "";
  }
  return text;
}

struct simulated { double waited = 0, end = 0; };

/// 200 batches of 10 records. A record takes 1 unit of time, every tenth one 6; a step takes 5. Keeps the first few.
inline simulated simulate(int threads, int ahead, example::timeline* drawn = nullptr) {
  auto const order = ds::shuffled{.seed = 1}.epoch(2000, 0);
  std::vector<double> free(std::size_t(std::max(threads, 1))), end_of_step;
  simulated s;
  for (int b = 0; b < 200; ++b) {
    double const slot = b < ahead + 2 ? 0 : end_of_step[std::size_t(b - ahead - 2)];  // ahead + 2 slots
    double ready = 0;
    for (int k = 0; k < 10; ++k) {
      auto const worker = std::ranges::min_element(free);
      double const begin = std::max(*worker, threads ? slot : s.end);
      *worker = begin + (order[10 * b + k] % 10 == 0 ? 6 : 1);
      ready = std::max(ready, *worker);
      if (drawn && b < 8)
        drawn->pieces.push_back({threads ? "worker " + std::to_string(worker - free.begin() + 1) : "loop",
                                 "reads a record", std::to_string(b + 1), begin, *worker});
    }
    double const begin = std::max(s.end, ready);
    s.waited += begin - s.end;
    s.end = begin + 5;
    end_of_step.push_back(s.end);
    if (drawn && b < 8) drawn->pieces.push_back({"loop", "step", std::to_string(b + 1), begin, s.end});
  }
  return s;
}

}  // namespace example::learn
