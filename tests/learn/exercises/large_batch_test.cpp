// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../verdict.hpp"

namespace {

void check(double base_lr, double base_batch, double batch, int warmup) {
  double const k = batch / base_batch;
  learn::path got, want, from_zero, root, early, plain;
  for (int t = 0; t < warmup + 3; ++t) {
    got.push_back(rate_of(t, base_lr, base_batch, batch, warmup));
    bool const rises = t < warmup;
    double const part = rises ? double(t) / warmup : 1;
    want.push_back(base_lr * (1 + (k - 1) * part));
    from_zero.push_back(base_lr * k * part);
    root.push_back(base_lr * (1 + (std::sqrt(k) - 1) * part));
    early.push_back(base_lr * (1 + (k - 1) * (rises ? double(t + 1) / warmup : 1)));
    plain.push_back(base_lr * k);
  }
  learn::require_path("the rate", got, want,
                      {{"the lines are still to be written.", learn::path(got.size(), 0)},
                       {"does it rise from 0? It begins with the rate of the small batch.", from_zero},
                       {"is it the root of k? This exercise scales linearly.", root},
                       {"is it one step ahead? Step 0 has the rate of the small batch.", early},
                       {"is the warm-up missing?", plain},
                       {"is the scaling missing?", learn::path(got.size(), base_lr)}},
                      "batch " + learn::number(batch) + " instead of " + learn::number(base_batch) + ": ");
}

}  // namespace

int main() {
  check(0.1, 256, 8192, 5);
  check(0.5, 32, 96, 4);
}
