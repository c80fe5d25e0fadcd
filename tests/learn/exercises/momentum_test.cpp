// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// After t steps v is the sum of mu^(t-i) g_i, so the path has a closed form.
#include "../verdict.hpp"

using learn::path;

namespace {

constexpr double lr = 0.1, mu = 0.75;

/// The path of p if step(p, v, g) changes p and v.
path of(auto step) {
  return learn::walk(1, learn::gradients, [&, v = 0.0](double& p, double g, auto) mutable { step(p, v, g); });
}

double velocity(std::int64_t t) {
  double sum = 0;
  for (std::int64_t i = 1; i <= t; ++i) sum += std::pow(mu, t - i) * learn::gradients[std::size_t(i - 1)];
  return sum;
}

}  // namespace

int main() {
  path const none = of([](double&, double&, double) {});
  path const plain = of([](double& p, double&, double g) { p -= lr * g; });
  path const momentum = learn::walk(1, learn::gradients, [](double& p, double, auto t) { p -= lr * velocity(t); });
  learn::require_path(
      "p", of([](double& p, double& v, double g) { momentum_step(p, v, g, lr, mu); }), momentum,
      {{"momentum_step is still to be written.", none},
       {"is this plain gradient descent? v must keep mu times its old value.", plain},
       {"is v updated after p? The step uses the new v.",
        of([](double& p, double& v, double g) { p -= lr * v, v = mu * v + g; })},
       {"is the gradient multiplied by 1 - mu? In this form it enters v whole.",
        of([](double& p, double& v, double g) { v = mu * v + (1 - mu) * g, p -= lr * v; })},
       {"is the sign of mu v wrong?", of([](double& p, double& v, double g) { v = g - mu * v, p -= lr * v; })},
       {"is mu missing? v must forget.", of([](double& p, double& v, double g) { v = v + g, p -= lr * v; })},
       {"is the learning rate missing?", of([](double& p, double& v, double g) { v = mu * v + g, p -= v; })},
       {"is the step added? It must be subtracted.",
        of([](double& p, double& v, double g) { v = mu * v + g, p += lr * v; })}},
      "momentum: ");
  path const nesterov =
      learn::walk(1, learn::gradients, [](double& p, double g, auto t) { p -= lr * (g + mu * velocity(t)); });
  learn::require_path("p", of([](double& p, double& v, double g) { nesterov_step(p, v, g, lr, mu); }), nesterov,
                      {{"nesterov_step is still to be written.", none},
                       {"is this classical momentum? Nesterov's step is g + mu v.", momentum},
                       {"is mu missing in the step? It is g + mu v.",
                        of([](double& p, double& v, double g) { v = mu * v + g, p -= lr * (g + v); })},
                       {"is g missing in the step? It is g + mu v.",
                        of([](double& p, double& v, double g) { v = mu * v + g, p -= lr * mu * v; })},
                       {"does the step look along the old v? v must be updated first.",
                        of([](double& p, double& v, double g) { p -= lr * (g + mu * v), v = mu * v + g; })}},
                      "momentum is right; Nesterov: ");
}
