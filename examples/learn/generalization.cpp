// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Test accuracy against the batch after equal epochs, for three ways to scale the rate: docs/learn/large_batches.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{
        argc,
        argv,
        {.what = "Shows the test accuracy by size of the batch, for three ways to scale the rate.",
         .seeds = "3",
         .batches = "8,32,128,512,1438"}};
    panel shown{
        "test accuracy in % after 30 epochs; a circle for each seed", "batch", axis::nines, {}, x_axis::doubling};
    for (auto const* name : {"same rate", "square root, warm-up", "linear, warm-up"})
      shown.curves.push_back({name, {}});
    std::puts("batch  updates         same rate       square root            linear");
    std::vector<double> mean[3];
    for (int batch : e.batches) {
      int const epoch = 1438 / batch;
      std::printf("%5d  %7d", batch, 30 * epoch);
      // snippet: scaling
      double const lr = 0.05, k = batch / 8.;
      ds::gradual_warmup<ds::constant> const rates[] = {{1, 0, {lr}},
                                                        {std::sqrt(k), 5 * epoch, {ds::sqrt_scaled(lr, batch, 8)}},
                                                        {k, 5 * epoch, {ds::linear_scaled(lr, batch, 8)}}};
      // end
      for (std::size_t i = 0; i < 3; ++i) {
        auto const of = learn::with_seeds(e, [&](std::uint64_t seed) {
          return learn::train({.steps = 30 * epoch, .batch = batch, .network = "relu50", .seed = seed}, ds::sgd{},
                              ds::learning_rate(rates[i])).accuracy;
        });
        auto const [low, average, high] = learn::spread_of(of);
        std::printf("  %4.1f (%4.1f-%4.1f)", average, low, high);
        mean[i].push_back(average);
        shown.curves[i].points.push_back({double(batch), average});
        for (double one : of) shown.curves[i].marks.push_back({double(batch), one});
      }
      std::puts("");
    }
    if (e.own_batches) {
      e.claim(mean[0][0] > 94 && mean[0][4] < 65, "with one rate and equal epochs the whole set learns least");
      for (std::size_t b = 1; b < 5; ++b) e.claim(mean[0][b] < mean[0][b - 1], "each larger batch is worse");
      e.claim(mean[1][4] > mean[0][4] + 20, "a scaled rate makes up for most of it");
      e.claim(mean[2][2] > mean[0][0] - 2 && mean[2][4] < 30,
              "the linear one for a batch of 128, but not for the whole set");
    }
    e.write("Equal epochs, handwritten digits", {shown});
  });
}
