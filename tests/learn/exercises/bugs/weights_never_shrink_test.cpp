// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../../moments.hpp"

using learn::moments, learn::number, learn::path;

int main() {
  double const got = learn::run(adamw{}, 1, path(100)).p.back(), want = std::pow(1 - 1e-4, 100);
  if (!learn::same(got, want)) {
    std::string const sentence =
        "after 100 steps without a gradient, a weight of 1 is " + number(got) + " and should be " + number(want);
    if (learn::same(got, std::pow(1 - 1e-7, 100))) learn::wrong(sentence + "; its decay is 1000 times too small.");
    if (learn::same(got, std::pow(1 - 0.1, 100))) learn::wrong(sentence + "; is lr gone from the decay?");
    learn::wrong(sentence + ".");
  }
  moments const a{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .wd = 0.1};
  learn::require_path("p", learn::run(adamw{}, 1, learn::gradients).p,
                      a.after([&](moments& x, double p, double t) { return a.lr * (x.direction(t) + a.wd * p); }), {},
                      "the decay is right, but ");
}
