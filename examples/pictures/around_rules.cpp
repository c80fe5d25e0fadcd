// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/minimizers/esgd.hpp>
#include <descent/minimizers/lbfgs.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/noise.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/sgd.hpp>

#include "shown_rule.hpp"

#include <limits>
#include <variant>

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

/// The best individual after each generation.
path esgd_walk(surface const& s) {
  walker w{s};
  using rule = std::variant<ds::sgd, ds::adam>;
  std::vector<rule> const rules{ds::sgd{.lr = 1e-3}, ds::adam{.lr = 0.05}};
  ds::esgd_optimizer opt{w.parameters, rules,
                         ds::esgd{.generations = 60, .deviation = 0.2, .annealing = 1, .spread = 0.1, .seed = 1}};
  path result{0, {w.here()}};
  point best = w.here();
  double least = std::numeric_limits<double>::infinity();
  auto const train = [&](auto& optimizer) {
    for (int i = 0; i < 5; ++i) w.backward(), optimizer.step();
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

template <class... Ps> shown_rule around(std::string name, std::string note, ds::sgd rule, Ps... policies) {
  auto const start = start_of(rule, policies...);
  return noted({std::move(name), true, start, start}, {note, note});
}

}  // namespace

std::vector<shown_rule> around_rules() {
  ds::sgd const momentum{.momentum = 0.9};
  return {
      around("sam", "around sgd", ds::sgd{}, ds::sam{}),
      around("lookahead", "sgd, momentum 0.9", momentum, ds::lookahead{}),
      around("gradient_ahead", "sgd, momentum 0.9", momentum, ds::gradient_ahead{}),
      around("noisy_sgd", "", ds::sgd{}, ds::gradient_noise{.seed = 1}),
      {"lbfgs", false, {}, {}, {"at most 100 iterations, 200 evaluations"}, lbfgs_walk},
      {"esgd", false, {}, {}, {"deviation 0.2, no annealing; 5 steps"}, esgd_walk},
  };
}

}  // namespace example::pictures
