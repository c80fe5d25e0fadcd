// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Whose record is when: ranks, epochs, a resumed run; and a simulated loader: docs/learn/data.md.
#include "../parts/timeline.hpp"
#include "experiment.hpp"

#include <descent/data/distributed_sampler.hpp>
#include <descent/data/loader.hpp>
#include <descent/data/sources.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
std::size_t companions(bool reshuffle) {
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (int e = 0; e < 20; ++e) {
    auto const order = ds::shuffled{.seed = 1}.epoch(240, reshuffle ? e : 0);
    for (std::int64_t a = 0; a < 240; ++a)
      for (std::int64_t b = a + 1; b < (a / 8 + 1) * 8; ++b) pairs.insert(std::minmax({order[a], order[b]}));
  }
  return pairs.size();
}

/// The records of some batches of 5, from a position on, with so many worker threads.
std::string records(int count, ds::loader_position from, int threads) {
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
simulated simulate(int threads, int ahead, example::timeline* drawn = nullptr) {
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

int main(int argc, char** argv) {
  return example::exit_code([&] {
    example::learn::options const options{argc, argv, {.figures = false}};
    std::puts("1. Places of 15 records on 3 ranks, each third one as in PyTorch's sampler:");
    for (int e : {0, 1}) print_epoch(e, ds::torch_order{.seed = 1}, [](std::int64_t k) { return k % 3; });
    std::puts("   and as slices of global batches of 6:");
    print_epoch(0, ds::shuffled{.seed = 1}, [](std::int64_t k) {
      int rank = 0;
      for (int r = 0; r < 3; ++r)
        if (auto const s = ds::batches{.size = 6}.slice(k / 6, 15, r, 3); k >= s.first && k < s.first + s.count)
          rank = r;
      return rank;
    });
    std::printf("2. Of %d pairs, so many met in a batch: in 20 equal epochs %d, in 20 shuffled ones %d\n",
                240 * 239 / 2, int(companions(false)), int(companions(true)));
    std::printf("3. Batches of an epoch and the next:%s\n", records(6, {}, 0).c_str());
    std::printf("   resumed after the second one:                    %s\n", records(4, {0, 2}, 3).c_str());
    std::puts("4. A simulated loader, 200 batches: time waited, the whole time, the ideal");
    auto const alone = simulate(0, 0);
    std::printf("   no threads:         %4.0f of %4.0f\n", alone.waited, alone.end);
    for (int threads : {1, 2, 3, 4, 8}) {
      auto const s = simulate(threads, 2);
      std::printf("   %d threads, 2 ahead: %4.0f of %4.0f, ideal %4.0f\n", threads, s.waited, s.end,
                  200 * std::max(15. / threads, 5.));
    }
    for (int ahead : {0, 1, 2, 4, 8}) {
      auto const s = simulate(4, ahead);
      std::printf("   4 threads, %d ahead: %4.0f of %4.0f\n", ahead, s.waited, s.end);
    }
    example::timeline none{"no workers", {}}, short_ring{"4 workers, 0 ahead", {}}, ring{"4 workers, 4 ahead", {}};
    simulate(0, 0, &none), simulate(4, 0, &short_ring), simulate(4, 4, &ring);
    options.write(example::draw("Who reads and who waits, simulated; numbers are batches of ten records", "time units",
                                {none, short_ring, ring}));
  });
}
