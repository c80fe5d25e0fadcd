// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// From gradient descent to Adam, one change at a time, on one surface: docs/learn/momentum_to_adam.md.
#include "experiment.hpp"

#include <descent/descent.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;

/// A valley, f = (u^2 + 50 v^2) / 2, whose axes u and v are turned by an angle against x and y. Starts at u = 4, v = 1.
std::vector<example::point> losses(double angle, auto const& rule, int steps) {
  double const c = std::cos(angle), s = std::sin(angle);
  std::vector<double> p{4 * c - s, 4 * s + c}, g(2);
  ds::parameters<double> params;
  params.add("p", p, g);
  ds::optimizer opt{params, rule};
  std::vector<example::point> all;
  for (int t = 0; t <= steps; ++t) {
    double const u = c * p[0] + s * p[1], v = c * p[1] - s * p[0];
    all.push_back({double(t), (u * u + 50 * v * v) / 2});
    g = {c * u - s * 50 * v, s * u + c * 50 * v};
    opt.step();
  }
  return all;
}

example::panel panel{"valley turned by 30°, each rule with its best rate", "step", example::axis::logarithmic, {}};

/// Tries 36 rates: after how many steps is the loss below 0.01 and stays there?
void race(std::string const& name, auto rule) {
  std::printf("%-18s", name.c_str());
  for (double degrees : {0, 30}) {
    int best = 1000;
    double rate = 0;
    for (int k = 0; k < 36; ++k) {
      rule.lr = 1e-3 * std::pow(10, k / 9.0);
      auto const all = losses(degrees * std::acos(-1) / 180, rule, 999);
      int steps = 999;
      while (steps > 0 && all[std::size_t(steps)].y < 0.01) --steps;
      if (steps + 1 < best) best = steps + 1, rate = rule.lr;
    }
    std::printf("   %3.0f°: %4d steps, lr %-6.3g", degrees, best, rate);
    rule.lr = rate;
    if (degrees > 0) panel.curves.push_back({name, losses(degrees * std::acos(-1) / 180, rule, 120)});
  }
  std::puts("");
}

int main(int argc, char** argv) {
  return example::exit_code([&] {
    example::learn::options const options{argc, argv};
    race("gradient descent", ds::sgd{});
    race("momentum 0.9", ds::sgd{.momentum = 0.9});
    race("Nesterov 0.9", ds::sgd{.momentum = 0.9, .nesterov = true});
    race("Adagrad", ds::adagrad{});
    race("RMSprop", ds::rmsprop{});
    race("Adam", ds::adam{});
    options.write("From gradient descent to Adam", {panel});
  });
}
