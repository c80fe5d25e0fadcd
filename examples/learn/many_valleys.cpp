// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The straight line from one minimum of a network to another: docs/learn/minima.md.
#include "experiment.hpp"
#include "loss_surface.hpp"

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
        argc, argv, {.what = "Follows the straight line from one minimum of a network to another."}};
    learn::loss_surface surface{"relu50"};
    auto const minimum = [&](std::uint64_t k, int batch, double lr) {
      learn::settings const s{
          .steps = 5000, .batch = batch, .network = "relu50", .seed = e.seed + k, .loss_goal = 0.03};
      return learn::train<double>(s, ds::sgd{.lr = lr}).values;
    };
    panel p{"training loss", "share of the way", axis::logarithmic, {}};
    auto const line = [&](std::string const& name, learn::weights const& from, learn::weights const& to) {
      auto const way = learn::moved(to, -1, from);
      curve c{name, {}};
      double highest = 0;
      for (int k = 0; k <= 20; ++k) {
        c.points.push_back({k / 20., surface.loss(learn::moved(from, k / 20., way))});
        highest = std::max(highest, c.points.back().y);
      }
      std::printf("%-32s %.3f, at most %.3f between, %.3f; distance %.1f\n", name.c_str(), c.points.front().y, highest,
                  c.points.back().y, learn::norm(way));
      p.curves.push_back(c);
      return highest;
    };
    auto const a = minimum(0, 32, 0.2), b = minimum(1, 32, 0.2), c = minimum(2, 32, 0.2), same = minimum(0, 128, 0.2);
    double const ab = line("two starts", a, b), ac = line("two others", a, c);
    double const start = line("one start, batch 32 and 128", a, same);
    e.claim(std::min(ab, ac) > 0.15, "there is a wall between minima of different starts");
    e.claim(start < 0.06, "but none between those of one start");
    e.write("From one minimum to another", {p});
  });
}
