// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The loss is (w - 3)^2 / 2, so w = 3 + (1 - lr)^t (w - 3) after t steps.
#include "../verdict.hpp"

using learn::path;

int main() {
  double const lr = 0.25;
  path const steps(8);
  auto const on_loss = [&](auto step) {
    return learn::walk(4, steps, [&](double& w, double, auto) { step(w, w - 3); });
  };
  path const got = on_loss([&](double& w, double g) { descend(w, g, lr); });
  path want;
  for (int t = 0; t <= 8; ++t) want.push_back(3 + std::pow(1 - lr, t));
  learn::require_path(
      "w", got, want,
      {{"the line is still to be written.", on_loss([](double&, double) {})},
       {"is the sign right? The gradient points uphill.", on_loss([&](double& w, double g) { w += lr * g; })},
       {"is the learning rate missing?", on_loss([](double& w, double g) { w -= g; })},
       {"is w replaced by the step instead of moved by it?", on_loss([&](double& w, double g) { w = -lr * g; })}});
}
