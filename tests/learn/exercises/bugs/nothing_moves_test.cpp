// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The gradient of w^2 / 2 is w, so each step multiplies w by 1 - lr.
#include "../../verdict.hpp"

using learn::path;

int main() {
  path got{1}, want{1}, adding{1};
  model m{{1}, {0}};
  double sum = 0;
  for (int t = 1; t <= 5; ++t) {
    train(m, 1, 0.25, [](model& of) { of.dw[0] += of.w[0]; });
    got.push_back(m.w[0]);
    want.push_back(want.back() * 0.75);
    sum += adding.back();
    adding.push_back(adding.back() - 0.25 * sum);
  }
  learn::require_path("w", got, want,
                      {{"the gradients are lost before they are used.", path(6, 1)},
                       {"are the gradients ever set to 0? backward() adds to them.", adding}});
}
