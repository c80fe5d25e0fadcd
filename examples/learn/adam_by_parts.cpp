// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Three questions about Adam, each answered by numbers: docs/learn/adam.md.
#include "experiment.hpp"

#include <descent/descent.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace ds = descent;

/// The values of parameters that start at `p` and get the gradients g(t), after each step.
std::vector<std::vector<double>> path(std::vector<double> p, int steps, auto const& gradient, auto const&... recipe) {
  std::vector<double> g(p.size());
  ds::parameters<double> params;
  params.add("p", p, g);
  ds::optimizer opt{params, recipe...};
  std::vector<std::vector<double>> all{p};
  for (int t = 1; t <= steps; ++t) {
    gradient(t, g);
    opt.step();
    all.push_back(p);
  }
  return all;
}

int main(int argc, char** argv) {
  return example::exit_code([&] {
    example::learn::options const options{
        argc, argv, {.what = "Shows what bias correction, the second moment and decoupled decay do in Adam."}};
    std::puts("1. Steps with a gradient of 1 and lr 0.001, with and without bias correction:");
    auto const one = [](int, auto& g) { g = {1}; };
    auto const with = path({0}, 1000, one, ds::adam{}),
               without = path({0}, 1000, one, ds::adam{.bias_correction = false});
    for (std::size_t t : {1, 2, 10, 100, 1000})
      std::printf("   step %4zu: %.6f  %.6f\n", t, with[t - 1][0] - with[t][0], without[t - 1][0] - without[t][0]);
    example::panel lengths{"length of a step, in units of lr", "step", example::axis::linear,
                           {{"with bias correction", {}}, {"without bias correction", {}}}, example::x_axis::decades};
    for (std::size_t t = 1; t <= 1000; ++t)
      for (std::size_t k : {0, 1}) {
        auto const& p = k == 0 ? with : without;
        lengths.curves[k].points.push_back({double(t), (p[t - 1][0] - p[t][0]) / 0.001});
      }
    std::puts("2. Adam with beta1 = 0, beta2 near 1 and lr / sqrt(t) against Adagrad, after 100 gradients:");
    auto const waves = [](int t, auto& g) { g = {std::sin(3.0 * t), 40 * std::cos(7.0 * t)}; };
    auto const adagrad = path({1, 1}, 100, waves, ds::adagrad{.lr = 0.1, .eps = 0}).back();
    for (double distance : {1e-2, 1e-4, 1e-6}) {
      auto const adam = path({1, 1}, 100, waves, ds::adam{.beta1 = 0, .beta2 = 1 - distance, .eps = 1e-30},
                             ds::learning_rate([](std::int64_t t) { return 0.1 / std::sqrt(double(t + 1)); })).back();
      std::printf("   beta2 = 1 - %.0e: differs by %.1e and %.1e\n", distance, std::fabs(adam[0] - adagrad[0]),
                  std::fabs(adam[1] - adagrad[1]));
    }
    std::puts("3. Two weights of 1 with gradients of +-0.01 and +-100 and decay 0.1, after 1000 steps:");
    auto const noise = [](int t, auto& g) { g = {t % 2 ? 0.01 : -0.01, t % 2 ? 100. : -100.}; };
    auto const l2 = path({1, 1}, 1000, noise, ds::adam{.lr = 1e-2, .weight_decay = 0.1}).back();
    auto const decoupled = path({1, 1}, 1000, noise, ds::adamw{.lr = 1e-2, .weight_decay = 0.1}).back();
    std::printf("   L2 in the gradient (adam): %.3f %.3f\n   decoupled (adamw):         %.3f %.3f\n", l2[0], l2[1],
                decoupled[0], decoupled[1]);
    options.write("The first 1000 steps of Adam with a gradient of 1", {lengths});
  });
}
