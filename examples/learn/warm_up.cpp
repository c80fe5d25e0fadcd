// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Runs that are lost without a warm-up: docs/learn/schedules.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace ds = descent;
using namespace example;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Trains with and without a warm-up at a high rate.", .seeds = "24"}};
    std::vector<dot_panel> panels;
    for (double lr : {0.003, 0.04}) {
      dot_panel p{"test accuracy in %, lr " + short_number(lr), axis::linear,
                  {{"constant", {}}, {"cosine", {}}, {"warm-up and cosine", {}}}};
      for (std::uint64_t seed = e.seed; seed < e.seed + (lr < 0.01 ? std::min(e.seeds, std::uint64_t{3}) : e.seeds);
           ++seed) {
        // snippet: schedules
        learn::settings const s{.steps = 400, .network = "relu60,relu60,relu60,relu60,relu60,relu60", .seed = seed};
        ds::adam const rule{.lr = lr};
        auto const constant = learn::train(s, rule);
        auto const cosine = learn::train(s, rule, ds::learning_rate(ds::cosine{lr, 0, 400}));
        auto const warm = learn::train(s, rule, ds::learning_rate(ds::warmup<ds::cosine>{25, {lr, 0, 375}}));
        // end
        double const of[] = {constant.accuracy, cosine.accuracy, warm.accuracy};
        for (std::size_t k = 0; k < 3; ++k) p.rows[k].values.push_back(of[k]);
      }
      std::printf("lr %.3f, %2d seeds        mean   standard error   lowest  highest\n", lr,
                  int(p.rows[0].values.size()));
      for (auto const& r : p.rows) {
        auto const [mean, deviation] = sample_of(r.values);
        auto const [low, high] = std::ranges::minmax(r.values);
        std::printf("  %-20s %5.1f %%  %13.1f %%  %5.1f %%  %5.1f %%\n", r.name.c_str(), mean,
                    deviation / std::sqrt(double(r.values.size())), low, high);
      }
      auto const mean = [&](std::size_t k) { return sample_of(p.rows[k].values).mean; };
      if (lr < 0.01) e.claim(std::min({mean(0), mean(1), mean(2)}) > 90, "a small rate needs no warm-up");
      else e.claim(mean(2) > mean(1) && mean(1) > mean(0) + 5, "a large rate does");
      panels.push_back(p);
    }
    e.write_dots("Adam with three schedules: six hidden layers on handwritten digits, a dot for each seed", panels);
  });
}
