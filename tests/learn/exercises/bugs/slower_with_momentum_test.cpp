// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// With a constant gradient of 1, step t is lr (1 - mu^t) / (1 - mu) long.
#include "../../verdict.hpp"

using learn::path;

int main() {
  momentum_descent opt(1);
  std::vector<double> p{0};
  path got{0};
  for (int t = 0; t < 20; ++t) {
    opt.step(p, {1});
    got.push_back(p[0]);
  }
  auto const with = [](auto length) {
    return learn::walk(0, path(20), [&](double& x, double, auto t) { x -= 0.01 * length(double(t)); });
  };
  learn::require_path("p", got, with([](double t) { return (1 - std::pow(0.9, t)) / 0.1; }),
                      {{"the second step should be longer than the first.",
                        with([](double t) { return (1 - std::pow(-0.9, t)) / 1.9; })},
                       {"is the momentum gone?", with([](double) { return 1; })},
                       {"is this an average of the gradients? In this form g enters b whole.",
                        with([](double t) { return 1 - std::pow(0.9, t); })},
                       {"does p move against the gradient, and along it in turn?",
                        with([](double t) { return -(1 - std::pow(-0.9, t)) / 1.9; })}},
                      "with a constant gradient of 1, ");
}
