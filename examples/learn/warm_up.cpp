// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Runs that are lost without a warm-up: docs/learn/schedules.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

namespace ds = descent;
using namespace example;

/// Means over ten steps.
curve over_steps(std::string const& name, std::vector<double> const& loss) {
  curve c{name, {}};
  for (std::size_t t = 0; t + 10 <= loss.size(); t += 10) {
    double sum = 0;
    for (std::size_t i = t; i < t + 10; ++i) sum += loss[i] / 10;
    c.points.push_back({double(t) + 5, sum});
  }
  return c;
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Trains with and without a warm-up at a high rate."}};
    panel shown{"Adam, lr 0.04, loss of the batches", "step", axis::logarithmic, {}};
    for (auto const& [lr, seeds] : {std::pair{0.003, 3}, {0.04, 6}}) {
      double of_constant = 0, of_cosine = 0, of_warm = 0;  // mean accuracies
      std::vector<curve> runs[3];
      for (std::uint64_t seed = e.seed; seed < e.seed + std::uint64_t(seeds); ++seed) {
        // snippet: schedules
        learn::settings const s{.steps = 400, .network = "relu60,relu60,relu60,relu60,relu60,relu60", .seed = seed};
        ds::adam const rule{.lr = lr};
        auto const constant = learn::train(s, rule);
        auto const cosine = learn::train(s, rule, ds::learning_rate(ds::cosine{lr, 0, 400}));
        auto const warm = learn::train(s, rule, ds::learning_rate(ds::warmup<ds::cosine>{100, {lr, 0, 300}}));
        // end
        std::printf("lr %.3f, seed %d: constant %5.1f %%, cosine %5.1f %%, warm-up and cosine %5.1f %%\n", lr,
                    int(seed), constant.accuracy, cosine.accuracy, warm.accuracy);
        of_constant += constant.accuracy / seeds, of_cosine += cosine.accuracy / seeds,
            of_warm += warm.accuracy / seeds;
        runs[0].push_back(over_steps("constant", constant.loss));
        runs[1].push_back(over_steps("cosine", cosine.loss));
        runs[2].push_back(over_steps("warm-up and cosine", warm.loss));
      }
      shown.curves = {learn::mean_of(runs[0], 20), learn::mean_of(runs[1], 20), learn::mean_of(runs[2], 20)};
      std::printf("lr %.3f, mean:   constant %5.1f %%, cosine %5.1f %%, warm-up and cosine %5.1f %%\n", lr, of_constant,
                  of_cosine, of_warm);
      if (lr < 0.01) e.claim(std::min({of_constant, of_cosine, of_warm}) > 90, "a small rate needs no warm-up");
      else e.claim(of_warm > of_cosine && of_cosine > of_constant + 5, "a large rate does");
    }
    e.write("Six hidden layers on handwritten digits", {shown});
  });
}
