// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Rules that find their rate, against two that are given one of seven: docs/learn/no_rate.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace ds = descent;
using namespace example;

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{
        argc,
        argv,
        {.what = "Compares rules that find their rate with two that are given one of seven.", .seeds = "3"}};
    panel tuned{"test accuracy in %, rate given", "learning rate", axis::linear, {}, x_axis::decades};
    panel untuned{
        "test accuracy in %, rate found by the rule", "factor on the rate", axis::linear, {}, x_axis::decades};
    // snippet: trial
    auto const trial = [&](auto rule, double factor = 1) {
      rule.lr *= factor;
      return learn::spread_of(learn::with_seeds(e, [&](std::uint64_t seed) {
        return learn::train({.steps = 600, .network = "relu50", .seed = seed}, rule).accuracy;
      }));
    };
    // end
    auto const sweep = [&](char const* name, auto rule) {
      std::printf("%-10s", name);
      tuned.curves.push_back({name, {}});
      double best = 0;
      for (double lr : {1e-4, 1e-3, 1e-2, 1e-1, 1., 10., 100.}) {
        rule.lr = lr;
        auto const got = trial(rule);
        std::printf(" %5.1f", got.mean);
        learn::add(tuned.curves.back(), lr, got);
        best = std::max(best, got.mean);
      }
      std::puts("");
      return best;
    };
    std::puts("test accuracy, %, with the rate\n             1e-4  1e-3  1e-2  1e-1     1    10   100");
    double const of_momentum = sweep("momentum", ds::sgd{.momentum = 0.9}), of_adam = sweep("adam", ds::adam{});
    double const best = std::max(of_momentum, of_adam);
    std::puts("with the defaults, and with ten times and a tenth of them");
    auto const free = [&](char const* name, auto rule) {
      std::array const got{trial(rule), trial(rule, 10), trial(rule, 0.1)};
      std::printf("%-20s %5.1f %5.1f %5.1f\n", name, got[0].mean, got[1].mean, got[2].mean);
      untuned.curves.push_back({name, {}});
      for (std::size_t i : {2, 0, 1}) learn::add(untuned.curves.back(), i == 2 ? 0.1 : i == 1 ? 10. : 1., got[i]);
      return std::array{got[0].mean, got[1].mean, got[2].mean};
    };
    auto const dog = free("dog", ds::dog{}), prodigy = free("prodigy", ds::prodigy{});
    auto const dadapt = free("dadapt_adamw", ds::dadapt_adamw{}), yellow = free("yellowfin", ds::yellowfin{});
    auto const schedule_free = free("schedule_free_adamw", ds::schedule_free_adamw{});
    e.claim(std::min({dog[0], prodigy[0], dadapt[0], yellow[0], schedule_free[0]}) > best - 6,
            "with their defaults, five rules come near to the best of 14 runs");
    e.claim(std::max(dog[1], dog[2]) < best - 50, "dog learns nothing with ten times or a tenth of its factor");
    e.claim(prodigy[2] > best - 3, "prodigy does not notice a tenth");
    e.claim(free("dowg", ds::dowg{})[0] < best - 30, "dowg does not get going within 600 steps");
    e.write("600 steps with a rate, and with none", {tuned, untuned});
  });
}
