// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../../moments.hpp"

using learn::moments, learn::path;

int main() {
  adam opt(1);
  std::vector<double> p{0};
  path got{0};
  for (double const g : learn::gradients) {
    opt.step(p, {g});
    got.push_back(p[0]);
  }
  moments const a{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
  auto const with = [&](auto step) {
    return a.after([&](moments& x, double, double t) { return a.lr * step(x, t); }, 0);
  };
  path nan(got.size(), std::nan(""));
  nan[0] = 0;
  learn::require_path(
      "p", got, with([](moments& x, double t) { return x.direction(t); }),
      {{"what is 1 - beta^t in the first step?", nan},
       {"is the correction gone? It is only wrong in one step.",
        with([&](moments& x, double) { return x.m / (std::sqrt(x.v) + a.eps); })},
       {"does the first step now have t = 2?", with([](moments& x, double t) { return x.direction(t + 1); })}},
      "with lr = 0.001, ");
}
