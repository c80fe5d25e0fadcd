// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// What the condition number costs, and what momentum and curvature save of it: docs/learn/condition.md.
#include "bowl.hpp"
#include "experiment.hpp"

#include <descent/descent.hpp>
#include <descent/minimizers/lbfgs.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace ds = descent;
using namespace example::learn;
using std::sqrt;

int main(int argc, char** argv) {
  return example::exit_code([&] {
    example::learn::options const options{
        argc, argv, {.what = "Shows what a condition number costs, and what momentum and curvature save of it."}};
    example::panel panel{"loss, condition number 1000", "evaluations of the gradient", example::axis::logarithmic, {}};
    for (double k : {10., 100., 1000.}) {
      // snippet: rates
      double const r = (sqrt(k) - 1) / (sqrt(k) + 1), lr = std::pow(2 / (sqrt(k) + 1), 2);
      ds::sgd const rules[] = {
          {.lr = 2 / (k + 1)}, {.lr = lr, .momentum = r * r}, {.lr = 1 / k, .momentum = r, .nesterov = true}};
      double const theory[] = {(k - 1) / (k + 1), r, sqrt(1 - 1 / sqrt(k))};
      // end
      std::printf("k = %4.0f", k);
      char const* const names[] = {"gradient descent", "heavy ball", "Nesterov", "L-BFGS"};
      auto const show = [&](char const* name, std::vector<double> const& loss) {
        std::printf("%s %s %zu", name == names[0] ? "" : ",", name, loss.size());
        if (k < 1000) return;
        panel.curves.push_back({name, {}});
        for (double t = 0; auto f : loss)
          if (t++ < 1000) panel.curves.back().points.push_back({t, f});
      };
      double worst = 0;
      for (int i : {0, 1, 2}) {
        auto const all = train(k, rules[i]);
        show(names[i], all.loss);
        std::printf(" (%.0f)", std::log(1e-6) / std::log(theory[i]));
        worst = all.worst;
      }
      bowl f{k};
      ds::parameters<double> params;
      params.add("p", f.p, f.g);
      ds::lbfgs_optimizer newton{params,
                                 ds::lbfgs{.max_iterations = 1000, .max_evaluations = 1000, .tolerance_change = 0}};
      std::vector<double> loss;
      newton.minimize([&] { return loss.push_back(f.backward()), loss.back(); },
                      [&](auto const& result) { return result.loss > 1e-12 * loss[0]; });
      show(names[3], loss);
      std::printf("\n          in each step V falls by %.3f or more; proved: %.3f\n", 1 - worst, 1 / sqrt(k));
      example::claim(worst < 1 - 1 / sqrt(k), "V falls as proved");
    }
    options.write("What a condition number of 1000 costs", {panel});
  });
}
