// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Three epochs of four batches with a gradient of 1: step t is lr (1 - mu^t) / (1 - mu) long.
#include "../../verdict.hpp"

using learn::path;

int main() {
  path got;
  double w = 0;
  train(w, 3, 4, [&](double now) {
    got.push_back(now);
    return 1.0;
  });
  got.push_back(w);
  if (got.size() != 13)
    learn::wrong("3 epochs of 4 batches took " + std::to_string(got.size() - 1) + " steps and should take 12.");
  auto const with = [](auto length) {
    return learn::walk(0, path(12), [&](double& x, double, std::int64_t t) { x -= 0.01 * length(t); });
  };
  auto const grown = [](std::int64_t t) { return (1 - std::pow(0.9, double(t))) / 0.1; };
  learn::require_path("w", got, with(grown),
                      {{"step 5 is the first of epoch 2, and it is as short as step 1.",
                        with([&](std::int64_t t) { return grown((t - 1) % 4 + 1); })},
                       {"now every step is as short as step 1.", with([](std::int64_t) { return 1; })}},
                      "epochs of 4 batches, a constant gradient: ");
}
