// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../moments.hpp"

using learn::moments, learn::path;

int main() {
  moments const a{.wd = 0.5};
  adamw const rule{.lr = a.lr, .beta1 = a.beta1, .beta2 = a.beta2, .eps = a.eps, .weight_decay = a.wd};
  double const lr = a.lr, wd = a.wd, start = 4;
  /// The path of p if l2 p enters the gradient, and the step subtracts decay(p, what Adam subtracts).
  auto const with = [&](double l2, auto decay) {
    return a.of(
        [&](moments& x, double& p, double g, double t) {
          x.average(g + l2 * p);
          double const u = lr * x.direction(t);
          p -= u + decay(p, u);
        },
        start);
  };
  auto const none = [](double, double) { return 0.0; };
  auto const decoupled = [&](double p, double) { return lr * wd * p; };
  learn::require_path(
      "p", learn::run(rule, start, learn::gradients).p, with(0, decoupled),
      {{"is the decay still part of the gradient? Then it is divided by sqrt(v^), as in Adam with L2.", with(wd, none)},
       {"is the decay counted twice, in the gradient and beside it?", with(wd, decoupled)},
       {"is the decay gone?", with(0, none)},
       {"is the decay without the learning rate? It is lr wd p.", with(0, [&](double p, double) { return wd * p; })},
       {"is the decay multiplied by lr twice?", with(0, [&](double p, double) { return lr * lr * wd * p; })},
       {"does the decay use p after the step? It uses the old p.",
        with(0, [&](double p, double u) { return lr * wd * (p - u); })},
       {"is the sign of the decay wrong? It pulls p towards 0.",
        with(0, [&](double p, double) { return -lr * wd * p; })}});
}
