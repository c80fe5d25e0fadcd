// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Whose record is when: ranks, epochs, a resumed run; and a simulated loader: docs/learn/data.md.
#include "experiment.hpp"
#include "loader_cases.hpp"

#include <descent/data/distributed_sampler.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace ds = descent;
using namespace example::learn;

int main(int argc, char** argv) {
  return example::exit_code([&] {
    example::learn::options const options{
        argc,
        argv,
        {.what = "Shows which rank reads which record, what a resumed run reads, and a simulated loader.",
         .figures = false}};
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
