// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Runs that fail without a warm-up: docs/learn/schedules.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace ds = descent;
using namespace example;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Trains with and without a warm-up at a high rate.", .seeds = "8"}};
    char const* const names[] = {"constant", "cosine", "warm-up and cosine"};
    panel shown{"Adam, lr 0.04: test accuracy in %", "seed", axis::nines, {}};
    for (double lr : {0.003, 0.04}) {
      std::vector<double> right[3];
      for (std::uint64_t seed = e.seed; seed < e.seed + e.seeds; ++seed) {
        // snippet: schedules
        learn::settings const s{.steps = 400, .network = "relu60,relu60,relu60,relu60,relu60,relu60", .seed = seed};
        ds::adam const rule{.lr = lr};
        right[0].push_back(learn::train(s, rule).accuracy);
        right[1].push_back(learn::train(s, rule, ds::learning_rate(ds::cosine{lr, 0, 400})).accuracy);
        ds::warmup<ds::cosine> const warm{25, {lr, 0, 375}};
        right[2].push_back(learn::train(s, rule, ds::learning_rate(warm)).accuracy);
        // end
      }
      double mean[3];
      for (std::size_t i = 0; i < 3; ++i) {
        auto const of = learn::spread_of(right[i]);
        std::printf("lr %.3f, %-18s %5.1f %% (%.1f to %.1f)\n", lr, names[i], mean[i] = of.mean, of.low, of.high);
        if (lr < 0.01) continue;
        shown.curves.push_back({names[i], {}});
        for (std::size_t k = 0; k < right[i].size(); ++k)
          shown.curves[i].marks.push_back({double(e.seed + k), right[i][k]});
      }
      int better = 0;
      for (std::size_t k = 0; k < right[0].size(); ++k) better += right[2][k] > right[1][k];
      std::printf("          the warm-up is better than the cosine alone for %d of %d seeds\n", better, int(e.seeds));
      if (lr < 0.01) e.claim(std::min({mean[0], mean[1], mean[2]}) > 90, "a small rate needs no warm-up");
      else e.claim(mean[2] > mean[1] + 1 && mean[1] > mean[0] + 5, "a large rate does");
    }
    e.write("Six hidden layers on handwritten digits", {shown});
  });
}
