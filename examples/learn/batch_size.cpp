// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Steps and images to a goal against the size of the batch: docs/learn/batches.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc,
                              argv,
                              {.what = "Counts the steps and images to a goal for several sizes of the batch.",
                               .seeds = "3",
                               .batches = "2,8,32,128,512,1438"}};
    panel steps{"steps until 94 % of the test images are right", "batch", axis::logarithmic, {}, x_axis::doubling};
    panel images{"images seen until then", "batch", axis::logarithmic, {}, x_axis::doubling};
    for (auto const* name : {"same rate", "square root", "linear"})
      for (auto* p : {&steps, &images}) p->curves.push_back({name, {}});

    std::puts("batch           same rate         square root              linear     images of the best");
    std::vector<double> fewest;
    for (int batch : e.batches) {
      std::printf("%5d", batch);
      // snippet: scaling
      double const lr = 0.02, k = batch / 8.;
      double const rates[] = {lr, lr * std::sqrt(k), lr * k};
      // end
      constexpr double never = 1e9;
      double best = never;
      for (std::size_t i = 0; i < 3; ++i) {
        auto const of = learn::spread_of(learn::with_seeds(e, [&](std::uint64_t seed) {
          auto const r = learn::train({.steps = 200 + 2000 / batch, .batch = batch, .network = "relu50", .seed = seed,
                                       .goal = 94, .look_every = 10}, ds::sgd{.lr = rates[i], .momentum = 0.9});
          return r.accuracy >= 94 ? double(r.steps) : never;
        }));
        std::printf(of.high < never ? "  %4.0f (%4.0f to %4.0f)" : "            not here", of.mean, of.low, of.high);
        if (of.high == never) continue;
        best = std::min(best, of.mean);
        learn::add(steps.curves[i], batch, of);
        learn::add(images.curves[i], double(batch), {of.low * batch, of.mean * batch, of.high * batch});
      }
      std::printf("  %20s\n", best < never ? short_number(std::round(best * batch)).c_str() : "-");
      fewest.push_back(best);
    }
    if (e.own_batches) {
      e.claim(fewest[1] >= 3 * fewest[3], "from 8 to 128 images a larger batch saves steps");
      e.claim(2 * fewest[5] >= fewest[3], "beyond it saves at most half of them");
      e.claim(fewest[5] * 1438 > 10 * fewest[1] * 8, "and the whole set costs ten times the images of a batch of 8");
    }
    e.write("The size of the batch: a hidden layer on handwritten digits", {steps, images});
  });
}
