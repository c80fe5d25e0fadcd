// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Gradients that explode in a recurrent network, with and without clipping: docs/learn/schedules.md.
#include "recurrent.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace ds = descent;
using namespace example;

struct run_of_seed {
  curve loss;  // means over 20 updates
  double last = 0, largest = 0;  // mean loss of the last tenth, largest norm
};

/// Learns the sum of 40 numbers in 1000 updates of 16 sequences. `policies` clip, or not.
run_of_seed trained(std::string const& name, double lr, std::uint64_t seed, auto const&... policies) {
  constexpr int steps = 1000, batch = 16;
  learn::recurrent net{seed};
  ds::optimizer opt{net.parameters(), ds::sgd{.lr = lr}, ds::zero_grad{}, policies...};
  random_source random{seed, 1};
  run_of_seed r{{name, {}}};
  double mean = 0;
  std::vector<float> x(learn::recurrent::length);
  for (int t = 1; t <= steps; ++t) {
    double loss = 0, squares = 0;
    for (int k = 0; k < batch; ++k) {
      float target = 0;
      for (float& one : x) one = float(random.uniform(-1, 1)), target += one;
      float const error = net.forward(x) - target;
      loss += error * error / batch;
      net.backward(x, 2 * error / batch);
    }
    for (auto const* part : {&net.dW, &net.du, &net.dv})
      for (float g : *part) squares += double(g) * g;
    opt.step();
    mean += loss / 20, r.largest = std::max(r.largest, std::sqrt(squares));
    if (t % 20 == 0) r.loss.points.push_back({t - 10., std::exchange(mean, 0)});
    if (t > 9 * steps / 10) r.last += loss * 10 / steps;
  }
  return r;
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Trains a recurrent network, clipped or not.", .seeds = "8"}};
    panel loss{"loss of the runs that learn, first seed", "update", axis::logarithmic, {}};
    std::puts("                      loss at the end, mean (range)   largest norm    above 10");
    auto const show = [&](std::string const& name, double lr, auto const&... policies) {
      std::vector<double> last, largest;
      int lost = 0;
      for (auto const& r : learn::with_seeds(e, [&](std::uint64_t s) { return trained(name, lr, s, policies...); })) {
        lost += !(r.last < 10);  // 13.3 is the loss of the answer 0
        last.push_back(std::isfinite(r.last) ? r.last : INFINITY), largest.push_back(r.largest);
        if (last.size() == 1 && r.last < 10) loss.curves.push_back(r.loss);
      }
      auto const [low, mean, high] = learn::spread_of(last);
      std::printf("%-18s %15.3g (%4.3g to %4.3g) %16.2g %5d of %d\n", name.c_str(), mean, low, high,
                  learn::spread_of(largest).high, lost, int(e.seeds));
      return lost;
    };
    int without = 0, with = 0;
    for (double lr : {1e-4, 1e-3, 1e-2}) {
      without = show("lr " + short_number(lr), lr);
      with += show("lr " + short_number(lr) + ", clipped", lr, ds::clip_norm{1});
    }
    e.claim(with == 0, "with clipping every run learns, at each rate");
    e.claim(2 * without >= int(e.seeds), "without it, half of the runs or more do not at the largest rate");
    e.write("A recurrent network that adds 40 numbers", {loss});
  });
}
