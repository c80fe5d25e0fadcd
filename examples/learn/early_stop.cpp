// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// How many epochs are enough, with few images and with many: docs/learn/data_size.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{
        argc, argv, {.what = "Shows how many epochs are enough, with few images and with many.", .seeds = "3"}};
    panel p{"loss of the validation images", "update", axis::logarithmic, {}};
    for (int images : {45, 180, 1438}) {
      std::vector<curve> runs;
      for (auto const& r : learn::with_seeds(e, [&](std::uint64_t seed) {
             return learn::train({.steps = 2400, .network = "relu50", .seed = seed, .look_every = 20, .images = images},
                                 ds::adam{.lr = 0.005});
           })) {
        auto const best = std::ranges::min_element(r.looks, {}, &learn::look::loss);
        auto const& last = r.looks.back();
        std::printf("%4d images: best loss %.3f after %4d updates (%.1f epochs), %.1f %%; after 2400: %.3f, %.1f %%\n",
                    images, best->loss, best->step, best->step / double(images / 32), best->accuracy, last.loss,
                    last.accuracy);
        runs.push_back({std::to_string(images) + " images", {}, {{double(best->step), best->loss}}});
        for (auto const& look : r.looks) runs.back().points.push_back({double(look.step), look.loss});
        e.claim(last.loss > 1.05 * best->loss, "the loss rises again");
        e.claim(last.accuracy > best->accuracy - 2, "the accuracy does not fall with it");
      }
      p.curves.push_back(learn::mean_of(runs));
    }
    e.write("How long to train", {p});
  });
}
