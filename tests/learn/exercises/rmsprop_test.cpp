// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../verdict.hpp"

using learn::path;

namespace {

constexpr double lr = 0.1, alpha = 0.75, eps = 0.25;

/// The path of p if step(p, v, g) changes p and v.
path of(auto step) {
  return learn::walk(1, learn::gradients, [&, v = 0.0](double& p, double g, auto) mutable { step(p, v, g); });
}
path averages(auto next) {
  return learn::walk(0, learn::gradients, [&](double& v, double g, auto) { v = next(v, g); });
}
double average(double v, double g) { return alpha * v + (1 - alpha) * g * g; }

}  // namespace

int main() {
  learn::record const got = learn::run(rmsprop{.lr = lr, .alpha = alpha, .eps = eps}, 1, learn::gradients);
  learn::require_path(
      "v", got.state[0], averages(average),
      {{"the line for s.v is still to be written.", averages([](double v, double) { return v; })},
       {"is this Adagrad's sum? Average instead.", averages([](double v, double g) { return v + g * g; })},
       {"is 1 - alpha missing? An average keeps alpha and adds 1 - alpha.",
        averages([](double v, double g) { return alpha * v + g * g; })},
       {"are alpha and 1 - alpha swapped?",
        averages([](double v, double g) { return (1 - alpha) * v + alpha * g * g; })},
       {"is the gradient squared?", averages([](double v, double g) { return alpha * v + (1 - alpha) * g; })}});
  learn::require_path(
      "p", got.p, of([](double& p, double& v, double g) { v = average(v, g), p -= lr * g / (std::sqrt(v) + eps); }),
      {{"the line for p is still to be written.", of([](double&, double&, double) {})},
       {"is eps inside the root? It is added to the root.",
        of([](double& p, double& v, double g) { v = average(v, g), p -= lr * g / std::sqrt(v + eps); })},
       {"is the root missing?", of([](double& p, double& v, double g) { v = average(v, g), p -= lr * g / (v + eps); })},
       {"is the step taken with the old v? Its own gradient counts.",
        of([](double& p, double& v, double g) { p -= lr * g / (std::sqrt(v) + eps), v = average(v, g); })}},
      "v is right, but ");
}
