// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../moments.hpp"

using learn::moments, learn::path;

namespace {

/// Both averages, and what becomes of p if they are wrong.
void check_averages(learn::record const& got) {
  moments const a;
  auto const averages = [](double keep, double add, auto of) {
    return moments::averages([=](double x, double g) { return keep * x + add * of(g); });
  };
  auto const first = [](double g) { return g; };
  auto const square = [](double g) { return g * g; };
  learn::require_path("m", got.state[0], averages(a.beta1, 1 - a.beta1, first),
                      {{"the line for m is still to be written.", averages(0, 0, first)},
                       {"are beta1 and beta2 swapped?", averages(a.beta2, 1 - a.beta2, first)},
                       {"are b1 and 1 - b1 swapped?", averages(1 - a.beta1, a.beta1, first)},
                       {"is 1 - b1 missing? An average keeps b1 and adds 1 - b1.", averages(a.beta1, 1, first)}});
  learn::require_path("v", got.state[1], averages(a.beta2, 1 - a.beta2, square),
                      {{"the line for v is still to be written.", averages(0, 0, square)},
                       {"is beta1 used for v? v has beta2.", averages(a.beta1, 1 - a.beta1, square)},
                       {"is 1 - b2 missing? An average keeps b2 and adds 1 - b2.", averages(a.beta2, 1, square)},
                       {"is the gradient squared?", averages(a.beta2, 1 - a.beta2, first)}},
                      "m is right, but ");
}

}  // namespace

int main() {
  if constexpr (descent::detail::members<adam::state> == 2) {
    moments const a;
    learn::record const got =
        learn::run(adam{.lr = a.lr, .beta1 = a.beta1, .beta2 = a.beta2, .eps = a.eps}, 1, learn::gradients);
    check_averages(got);
    learn::require_path(
        "p", got.p, a.after([&](moments& x, double, double t) { return a.lr * x.direction(t); }),
        {{"the line for p is still to be written.", path(learn::gradients.size() + 1, 1)},
         {"is the bias correction missing? m and v start at 0 and are too small at first.",
          a.after([&](moments& x, double, double) { return a.lr * x.m / (std::sqrt(x.v) + a.eps); })},
         {"is the bias correction of v missing?",
          a.after([&](moments& x, double, double t) { return a.lr * x.m_hat(t) / (std::sqrt(x.v) + a.eps); })},
         {"is the bias correction of m missing?",
          a.after([&](moments& x, double, double t) { return a.lr * x.m / (std::sqrt(x.v_hat(t)) + a.eps); })},
         {"are the steps counted from 0? The first step has t = 1.",
          a.after([&](moments& x, double, double t) { return a.lr * x.direction(t - 1); })},
         {"are the steps counted from 2? The first step has t = 1.",
          a.after([&](moments& x, double, double t) { return a.lr * x.direction(t + 1); })},
         {"is eps inside the root? It is added to the root.",
          a.after([&](moments& x, double, double t) { return a.lr * x.m_hat(t) / std::sqrt(x.v_hat(t) + a.eps); })},
         {"is eps added before the bias correction? It is added to sqrt(v^).",
          a.after([&](moments& x, double, double t) {
            return a.lr * x.m_hat(t) / ((std::sqrt(x.v) + a.eps) / std::sqrt(1 - std::pow(a.beta2, t)));
          })},
         {"is the root missing?",
          a.after([&](moments& x, double, double t) { return a.lr * x.m_hat(t) / (x.v_hat(t) + a.eps); })},
         {"does the gradient take the place of m?", a.of([&](moments& x, double& p, double g, double t) {
            x.average(g), p -= a.lr * g / (std::sqrt(x.v_hat(t)) + a.eps);
          })}},
        "m and v are right, but ");
  } else {
    learn::wrong("the state has " + std::to_string(descent::detail::members<adam::state>) +
                 " members and should have 2: `Real m, v;` for the two averages.");
  }
}
