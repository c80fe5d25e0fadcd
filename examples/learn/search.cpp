// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// A search for the learning rate and the batch: docs/learn/which.md.
#include "held_out.hpp"
#include "seeds.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

namespace ds = descent;
using namespace example;

constexpr double never = std::numeric_limits<double>::infinity();

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Searches a learning rate and a batch.", .seeds = "8"}};
    dataset const parts = learn::held_out();
    learn::settings const s{.steps = 240, .batch = 32, .network = "relu50", .of = &parts};
    auto const run = [&](learn::settings with, double lr, std::uint64_t seed) {  // with the schedule that it will have
      with.seed = seed;
      ds::warmup<ds::cosine> const schedule{with.steps / 20, {lr, 0, with.steps - with.steps / 20}};
      return 100 - learn::train(with, ds::sgd{.lr = lr, .momentum = 0.9}, ds::learning_rate(schedule)).accuracy;
    };
    panel rates{"wrong answers among images held out, %", "lr", axis::logarithmic, {}, x_axis::decades};
    rates.curves = {{"one seed", {}}, {std::to_string(e.seeds) + " seeds, mean and range", {}}};
    // snippet: rates
    double best = 0, least = 100;
    auto const try_rate = [&](int stage, double lr, learn::spread const& wrong) {
      std::printf("%d. lr %.3f: %4.1f %% wrong", stage, lr, wrong.mean);
      std::printf(stage == 1 ? "\n" : " (%.1f to %.1f)\n", wrong.low, wrong.high);
      if (learn::add(rates.curves[std::size_t(stage - 1)], lr, wrong); wrong.mean < least)
        least = wrong.mean, best = lr;
    };
    for (double lr = 0.001; lr < 4; lr *= 3) try_rate(1, lr, learn::spread_of({run(s, lr, e.seed)}));
    double const middle = best;
    least = 100;
    for (double k : {0.25, 0.5, 1., 2., 4.})
      try_rate(2, k * middle,
               learn::spread_of(learn::with_seeds(e, [&](auto seed) { return run(s, k * middle, seed); })));
    // end
    std::puts("   batch    lr   steps to 95 %   ms");
    for (int batch : {8, 32, 128, 512})
      for (double k : {0.5, 1., 2.}) {
        double const lr = k * ds::sqrt_scaled(best / 2, batch, 32);
        auto const steps = learn::spread_of(learn::with_seeds(e, [&](std::uint64_t seed) {
          auto const r = learn::train({.steps = 1000, .batch = batch, .network = "relu50", .seed = seed, .goal = 95,
                                       .look_every = 10, .of = &parts}, ds::sgd{.lr = lr, .momentum = 0.9});
          return r.accuracy >= 95 ? r.steps : never;
        }));
        double const ms = steps.mean * (1 + 0.02 * batch);  // the cost of a step, measured once where it will run
        if (ms < never) std::printf("3. %5d %5.3f %15.0f %4.0f\n", batch, lr, steps.mean, ms);
      }
    learn::settings last = s;
    last.of = nullptr;
    auto const test = learn::spread_of(learn::with_seeds(e, [&](auto seed) { return run(last, best, seed); }));
    std::printf("4. the test images, once, lr %.3f: %.1f %% wrong (%.1f to %.1f)\n", best, test.mean, test.low,
                test.high);
    e.claim(least < 5 && test.mean < least + 2, "the rate that was found works for new images");
    e.claim(rates.curves[1].points.back().y > 2 * least, "and the search has passed the best rate");
    e.write("A search for the learning rate", {rates});
  });
}
