// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/minimizers/esgd.hpp>
#include <descent/minimizers/lbfgs.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/noise.hpp>
#include <descent/rules/sgd.hpp>

#include "shown_rule.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace example::pictures {
namespace {

/// Two parameters at the start of a surface, and the gradient there.
struct walker {
  surface const& s;
  std::vector<float> x{float(s.start.x), float(s.start.y)}, g{0, 0};
  ds::parameters<float> parameters{};

  explicit walker(surface const& on) : s(on) { parameters.add("x", x.data(), g.data(), x.size()); }
  point here() const { return {x[0], x[1]}; }
  double loss() const { return s.value(here()); }
  void backward() {
    point const slope = s.gradient(here());
    g = {float(slope.x), float(slope.y)};
  }
};

path lbfgs_walk(surface const& s) {
  walker w{s};
  ds::lbfgs_optimizer opt{w.parameters, ds::lbfgs{.max_iterations = 100, .max_evaluations = 200}};
  path result{1, {w.here()}};
  auto const evaluate = [&] {
    w.backward();
    return w.loss();
  };
  auto const end = opt.minimize(evaluate, [&](auto const&) { return result.points.push_back(w.here()), true; });
  result.value = w.loss();
  result.told = std::to_string(end.iterations) + " iterations, " + std::to_string(end.evaluations) + " evaluations";
  return result;
}

/// Rastrigin's function, whose minimum is 0 at 0; other minima are near all other pairs of integers.
struct rastrigin {
  static constexpr double pi = std::numbers::pi;
  static double value(point p) {
    return 20 + p.x * p.x + p.y * p.y - 10 * (std::cos(2 * pi * p.x) + std::cos(2 * pi * p.y));
  }
  static point gradient(point p) {
    return {2 * p.x + 20 * pi * std::sin(2 * pi * p.x), 2 * p.y + 20 * pi * std::sin(2 * pi * p.y)};
  }
};
surface rastrigin_for(std::string name) {
  return {std::move(name), {-1.45, -4.05}, {4.45, 0.79}, {3.2, -3.2}, {0, 0}, 16000, 1000, {8, 24}, rastrigin::value,
          rastrigin::gradient, {}};
}

path descent_walk(surface const& s) {
  walker w{s};
  ds::optimizer opt{w.parameters, ds::sgd{.lr = 1e-3}};
  path result{1e-3, {w.here()}};
  for (int t = 1; t <= s.steps; ++t) {
    w.backward(), opt.step();
    if (t % s.mark == 0) result.points.push_back(w.here());
  }
  result.value = w.loss();
  result.told = std::to_string(s.steps) + " steps";
  return result;
}

/// The best individual after each generation.
path esgd_walk(surface const& s) {
  walker w{s};
  std::vector<ds::sgd> const rules{{.lr = 1e-3}, {.lr = 2e-3}};
  ds::esgd_optimizer opt{w.parameters, rules,
                         ds::esgd{.population = 10, .offspring = 30, .parents = 2, .elite = 5, .generations = 80,
                                  .deviation = 1, .annealing = 0.95, .spread = 0, .seed = 1}};
  path result{0, {w.here()}};
  point best = w.here();
  double least = std::numeric_limits<double>::infinity();
  auto const train = [&](auto& optimizer) {
    for (int i = 0; i < 20; ++i) w.backward(), optimizer.step();
  };
  auto const fitness = [&] {
    if (w.loss() < least) least = w.loss(), best = w.here();
    return w.loss();
  };
  auto const end = opt.minimize(train, fitness, [&](auto const&) { return result.points.push_back(best), true; });
  result.value = w.loss();
  result.told = std::to_string(end.generations) + " generations, the best of each";
  return result;
}

/// The smooth minimum of two bowls: a sharp one with curvature 30 on the way to a flat one with curvature 2.
struct two_minima {
  static constexpr point sharp{-0.2, 0.2}, flat{1.1, -0.7};
  static constexpr double softness = 0.2;
  static double of_sharp(point p) { return 15 * (std::pow(p.x - sharp.x, 2) + std::pow(p.y - sharp.y, 2)); }
  static double of_flat(point p) { return std::pow(p.x - flat.x, 2) + std::pow(p.y - flat.y, 2); }
  static double share(point p) {
    return 1 / (1 + std::exp((of_sharp(p) - of_flat(p)) / softness));
  }  // of the sharp one
  static double value(point p) {
    double const a = of_sharp(p), b = of_flat(p), least = std::fmin(a, b);
    return least - softness * std::log(std::exp((least - a) / softness) + std::exp((least - b) / softness));
  }
  static point gradient(point p) {
    double const k = share(p);
    return {k * 30 * (p.x - sharp.x) + (1 - k) * 2 * (p.x - flat.x),
            k * 30 * (p.y - sharp.y) + (1 - k) * 2 * (p.y - flat.y)};
  }
};
surface two_minima_for(std::string name) {
  return {std::move(name),
          {-2.3, -2},
          {2.3, 1.772},
          {-1.8, 1.2},
          two_minima::flat,
          100,
          10,
          {0.05, 0.25, 0.7, 1.4, 2.5, 5, 9},
          two_minima::value,
          two_minima::gradient,
          {}};
}

/// A bowl with ripples, which has many minima.
struct ripples {
  static constexpr point minimum{1, 0.4};
  static constexpr double height = 0.12, rate = 6;
  static double value(point p) {
    double const x = p.x - minimum.x, y = p.y - minimum.y;
    return (x * x + y * y) / 4 + height * (2 - std::cos(rate * x) - std::cos(rate * y));
  }
  static point gradient(point p) {
    double const x = p.x - minimum.x, y = p.y - minimum.y;
    return {x / 2 + height * rate * std::sin(rate * x), y / 2 + height * rate * std::sin(rate * y)};
  }
};
surface ripples_for(std::string name) {
  return {std::move(name), {-2.3, -1.4}, {2.1, 2.208}, {-1.9, 1.5}, ripples::minimum, 300, 25, {0.06, 0.3, 0.52, 0.9},
          ripples::value, ripples::gradient, {}};
}

/// The same walk on each of the surfaces that all rules share.
std::vector<scene> on_surfaces(path (*walk)(surface const&)) {
  std::vector<scene> all;
  for (surface const& s : surfaces()) all.push_back({s, {}, 0, walk});
  return all;
}

template <class... Ps> shown_rule around(std::string name, std::string note, ds::sgd rule, Ps... policies) {
  auto const start = start_of(rule, policies...);
  return noted({std::move(name), true, start, start}, {note, note});
}

}  // namespace

std::vector<shown_rule> around_rules() {
  ds::sgd const momentum{.momentum = 0.9};
  auto sam = around("sam", "", ds::sgd{}, ds::sam{});
  sam.scenes = {{two_minima_for("sgd"), start_of(ds::sgd{}), 0.05},
                {two_minima_for("sam around sgd, rho 0.6"), start_of(ds::sgd{}, ds::sam{.rho = 0.6}), 0.05}};
  sam.settings = {"a sharp minimum, and a flat one", "around sgd, rho 0.05"};
  auto noisy = around("noisy_sgd", "", ds::sgd{}, ds::gradient_noise{.seed = 1});
  noisy.scenes = {
      {ripples_for("sgd"), start_of(ds::sgd{}), 0.1},
      {ripples_for("noisy_sgd, eta 10"), start_of(ds::sgd{}, ds::gradient_noise{.eta = 10, .seed = 1}), 0.1}};
  noisy.settings = {"many minima", "eta 0.01"};
  return {
      sam,
      around("lookahead", "sgd, momentum 0.9", momentum, ds::lookahead{}),
      around("gradient_ahead", "sgd, momentum 0.9", momentum, ds::gradient_ahead{}),
      noisy,
      {"lbfgs", false, {}, {}, {"at most 100 iterations, 200 evaluations"}, on_surfaces(lbfgs_walk)},
      {"esgd", false, {}, {}, {}, {{rastrigin_for("Gradient descent"), {}, 0, descent_walk},
                                   {rastrigin_for("ESGD"), {}, 0, esgd_walk}}},
  };
}

}  // namespace example::pictures
