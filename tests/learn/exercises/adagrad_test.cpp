// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../verdict.hpp"

using learn::path;

namespace {

constexpr double lr = 0.1, eps = 0.25;

/// The path of p if step(p, s, g) changes p and s.
path of(auto step) {
  return learn::walk(1, learn::gradients, [&, s = 0.0](double& p, double g, auto) mutable { step(p, s, g); });
}
path sums(auto next) {
  return learn::walk(0, learn::gradients, [&](double& s, double g, auto) { s = next(s, g); });
}

}  // namespace

int main() {
  learn::record const got = learn::run(adagrad{.lr = lr, .eps = eps}, 1, learn::gradients);
  learn::require_path(
      "s", got.state[0], sums([](double s, double g) { return s + g * g; }),
      {{"the line for s.s is still to be written.", sums([](double s, double) { return s; })},
       {"is the old sum forgotten? s must add to it.", sums([](double, double g) { return g * g; })},
       {"is the gradient squared?", sums([](double s, double g) { return s + g; })},
       {"is the absolute value summed, not the square?", sums([](double s, double g) { return s + std::abs(g); })}});
  learn::require_path(
      "p", got.p, of([](double& p, double& s, double g) { s += g * g, p -= lr * g / (std::sqrt(s) + eps); }),
      {{"the line for p is still to be written.", of([](double&, double&, double) {})},
       {"is eps inside the root? It is added to the root.",
        of([](double& p, double& s, double g) { s += g * g, p -= lr * g / std::sqrt(s + eps); })},
       {"is the root missing?", of([](double& p, double& s, double g) { s += g * g, p -= lr * g / (s + eps); })},
       {"is the step taken with the old s? Its own gradient counts.",
        of([](double& p, double& s, double g) { p -= lr * g / (std::sqrt(s) + eps), s += g * g; })},
       {"is eps missing?", of([](double& p, double& s, double g) { s += g * g, p -= lr * g / std::sqrt(s); })},
       {"is this plain gradient descent? Divide by the root of s.",
        of([](double& p, double&, double g) { p -= lr * g; })}},
      "s is right, but ");
}
