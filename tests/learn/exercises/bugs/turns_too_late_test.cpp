// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../../moments.hpp"

using learn::moments, learn::path;

int main() {
  path turning(60, 1);
  std::fill(turning.begin() + 20, turning.end(), -1);
  path const p = learn::run(adam{}, 0, turning).p;
  auto const lowest = std::min_element(p.begin(), p.end()) - p.begin();
  moments const a{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
  path const want = learn::walk(0, turning, [&, x = a](double& w, double g, std::int64_t t) mutable {
    x.average(g);
    w -= a.lr * x.direction(double(t));
  });
  auto const right = std::min_element(want.begin(), want.end()) - want.begin();
  if (lowest != right)
    learn::wrong("the gradient turns after step 20, and p turns after step " + std::to_string(lowest) +
                 "; it should turn after step " + std::to_string(right) + ".");
  learn::require_path("p", p, want, {}, "p turns in time, but ");
}
