// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The paths of three rules along a curved valley: docs/learn/momentum_to_adam.md.
#include "experiment.hpp"
#include "map.hpp"

#include <descent/descent.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

/// Rosenbrock's function, f = (1 - x)^2 + 100 (y - x^2)^2, with the minimum 0 at (1, 1).
double f(double x, double y) { return (1 - x) * (1 - x) + 100 * (y - x * x) * (y - x * x); }

/// From (-1.2, 1), until f is below 1e-4.
std::vector<point> walked(auto const& rule) {
  std::vector<double> p{-1.2, 1}, g(2);
  ds::parameters<double> params;
  params.add("p", p, g);
  ds::optimizer opt{params, rule};
  std::vector<point> path{{p[0], p[1]}};
  while (!(f(p[0], p[1]) < 1e-4) && path.size() <= 30'000) {  // NaN is not below
    g[0] = -2 * (1 - p[0]) - 400 * p[0] * (p[1] - p[0] * p[0]);
    g[1] = 200 * (p[1] - p[0] * p[0]);
    opt.step();
    path.push_back({p[0], p[1]});
  }
  return path;
}

/// On the line where f has this value.
point on_line(double value, double angle) {
  double const x = 1 - std::sqrt(value) * std::cos(angle);
  return {x, x * x + std::sqrt(value) / 10 * std::sin(angle)};
}

learn::box const shown{{-1.6, -0.6}, {1.6, 1.8}};
panel paths = learn::map_of(shown, "paths until f is below 0.0001", {0.1, 1, 4, 20, 100}, on_line);
std::string figures = "rule,step,x,y,f\n";

/// Tries 16 rates, four for each factor of 10, and keeps the path with the fewest steps.
void race(std::string const& name, auto rule) {
  std::vector<point> best(30'001);
  double rate = 0;
  for (int k = 0; k < 16; ++k) {
    rule.lr = 1e-4 * std::pow(10, k / 4.0);
    if (auto path = walked(rule); path.size() < best.size()) best = path, rate = rule.lr;
  }
  std::printf("%-18s %5zu steps, lr %.3g\n", name.c_str(), best.size() - 1, rate);
  for (std::size_t t = 0; t < best.size(); ++t) {
    auto const [x, y] = best[t];
    figures += name + ',' + std::to_string(t) + ',' + short_number(x) + ',' + short_number(y) + ',' +
               short_number(f(x, y)) + '\n';
  }
  paths.curves.push_back({name, learn::inside(shown, best)});
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{argc, argv, {.what = "Writes the paths of three rules on Rosenbrock's function."}};
    race("gradient descent", ds::sgd{});
    race("momentum 0.9", ds::sgd{.momentum = 0.9});
    race("Adam", ds::adam{});
    options.write(draw("Rosenbrock's function, each rule with its best rate", {paths}, 1));
    if (!options.csv.empty()) write_file(options.csv, figures);
  });
}
