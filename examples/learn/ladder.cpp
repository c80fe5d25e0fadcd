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

/// The panels of the straight and of the turned valley.
struct drawn {
  learn::valley valley;
  panel losses, lengths, adaptive;

  drawn(double degrees, std::string const& name)
      : valley{degrees}, losses{name + " valley: loss", "step", axis::logarithmic, {}},
        lengths{learn::map_of(valley, name + ": with and without momentum, 60 steps")},
        adaptive{learn::map_of(valley, name + ": adaptive rules, 60 steps")} {}
} straight{0, "straight"}, turned{30, "turned"};

/// Tries 36 rates: after how many steps is the loss below 0.01 and stays there?
void race(std::string const& name, auto rule, panel drawn::* map) {
  std::printf("%-18s", name.c_str());
  for (auto* of : {&straight, &turned}) {
    int best = 1000;
    double rate = 0;
    for (int k = 0; k < 36; ++k) {
      rule.lr = 1e-3 * std::pow(10, k / 9.0);
      auto const all = learn::walked(of->valley, rule, 999).losses;
      int steps = 999;
      while (steps > 0 && all[std::size_t(steps)].y < 0.01) --steps;
      if (steps + 1 < best) best = steps + 1, rate = rule.lr;
    }
    std::printf("   %3d°: %4d steps, lr %-6.3g", of == &straight ? 0 : 30, best, rate);
    rule.lr = rate;
    auto loss = learn::walked(of->valley, rule, 120).losses;
    std::erase_if(loss, [](point p) { return p.y < 1e-9; });
    of->losses.curves.push_back({name, loss});
    (of->*map).curves.push_back({name, learn::inside(learn::shown, learn::walked(of->valley, rule, 60).path)});
  }
  std::puts("");
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{
        argc, argv, {.what = "Goes from gradient descent to Adam on one surface, one change at a time."}};
    race("gradient descent", ds::sgd{}, &drawn::lengths);
    race("momentum 0.9", ds::sgd{.momentum = 0.9}, &drawn::lengths);
    race("Nesterov 0.9", ds::sgd{.momentum = 0.9, .nesterov = true}, &drawn::lengths);
    race("Adagrad", ds::adagrad{}, &drawn::adaptive);
    race("RMSprop", ds::rmsprop{}, &drawn::adaptive);
    race("Adam", ds::adam{}, &drawn::adaptive);
    options.write(
        "From gradient descent to Adam, each rule with its best rate",
        {straight.losses, turned.losses, straight.lengths, turned.lengths, straight.adaptive, turned.adaptive}, 2);
  });
}
