// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Rules that find their rate, against two that are given one of seven: docs/learn/no_rate.md.
#include "experiment.hpp"
#include "run.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ds = descent;
using namespace example;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv};
    // snippet: trial
    auto const trial = [&](auto rule, double factor = 1) {
      rule.lr *= factor;
      return learn::train({.steps = 600, .network = "relu50", .seed = e.seed}, rule).accuracy;
    };
    // end
    auto const sweep = [&](char const* name, auto rule) {
      std::printf("%-10s", name);
      double best = 0;
      for (double lr : {1e-4, 1e-3, 1e-2, 1e-1, 1., 10., 100.}) {
        rule.lr = lr;
        double const got = trial(rule);
        std::printf(" %5.1f", got);
        best = std::max(best, got);
      }
      std::puts("");
      return best;
    };
    std::puts("test accuracy, %, with the rate\n             1e-4  1e-3  1e-2  1e-1     1    10   100");
    double const best = std::max(sweep("momentum", ds::sgd{.momentum = 0.9}), sweep("adam", ds::adam{}));
    std::puts("with the defaults, and with ten times and a tenth of them");
    auto const free = [&](char const* name, auto rule) {
      double const once = trial(rule);
      std::printf("%-20s %5.1f %5.1f %5.1f\n", name, once, trial(rule, 10), trial(rule, 0.1));
      return once;
    };
    double const found[] = {free("dog", ds::dog{}), free("prodigy", ds::prodigy{}),
                            free("dadapt_adamw", ds::dadapt_adamw{}), free("yellowfin", ds::yellowfin{}),
                            free("schedule_free_adamw", ds::schedule_free_adamw{})};
    e.claim(std::ranges::min(found) > best - 6, "with their defaults, five rules come near to the best of 14 runs");
    e.claim(free("dowg", ds::dowg{}) < best - 30, "dowg does not, within 600 steps");
  });
}
