// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// From gradient descent to Adam, one change at a time, on one surface: docs/learn/momentum_to_adam.md.
#include "experiment.hpp"
#include "valley.hpp"

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

panel losses{"valley turned by 30°, each rule with its best rate", "step", axis::logarithmic, {}};
panel paths[] = {learn::map_of(learn::valley{30}, "y, with and without momentum"),
                 learn::map_of(learn::valley{30}, "y, adaptive rules")};

/// Tries 36 rates: after how many steps is the loss below 0.01 and stays there?
void race(std::string const& name, auto rule, panel& map) {
  std::printf("%-18s", name.c_str());
  for (double degrees : {0, 30}) {
    learn::valley const valley{degrees};
    int best = 1000;
    double rate = 0;
    for (int k = 0; k < 36; ++k) {
      rule.lr = 1e-3 * std::pow(10, k / 9.0);
      auto const all = learn::walked(valley, rule, 999).losses;
      int steps = 999;
      while (steps > 0 && all[std::size_t(steps)].y < 0.01) --steps;
      if (steps + 1 < best) best = steps + 1, rate = rule.lr;
    }
    std::printf("   %3.0f°: %4d steps, lr %-6.3g", degrees, best, rate);
    rule.lr = rate;
    if (degrees == 0) continue;
    losses.curves.push_back({name, learn::walked(valley, rule, 120).losses});
    map.curves.push_back({name, learn::inside(learn::walked(valley, rule, 60).path)});
  }
  std::puts("");
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{
        argc, argv, {.what = "Goes from gradient descent to Adam on one surface, one change at a time."}};
    race("gradient descent", ds::sgd{}, paths[0]);
    race("momentum 0.9", ds::sgd{.momentum = 0.9}, paths[0]);
    race("Nesterov 0.9", ds::sgd{.momentum = 0.9, .nesterov = true}, paths[0]);
    race("Adagrad", ds::adagrad{}, paths[1]);
    race("RMSprop", ds::rmsprop{}, paths[1]);
    race("Adam", ds::adam{}, paths[1]);
    options.write("From gradient descent to Adam", {losses, paths[0], paths[1]});
  });
}
