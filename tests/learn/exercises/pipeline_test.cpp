// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The orders of Narayanan et al. 2021, figure 4 (bottom), for one to four stages.
#include "../verdict.hpp"

namespace {

std::string order(int ahead, int micro_batches) {
  std::string all;
  for (int f = 0, b = 0; b < micro_batches;)
    if (f < micro_batches && f <= b + ahead) all += " F" + std::to_string(++f);
    else all += " B" + std::to_string(++b);
  return all.empty() ? all : all.substr(1);
}

void check(int stage, int stages, int micro_batches) {
  std::string const got = schedule(stage, stages, micro_batches), want = order(stages - stage, micro_batches);
  if (got == want) return;
  std::string const sentence = "stage " + std::to_string(stage) + " of " + std::to_string(stages) + " with " +
                               std::to_string(micro_batches) + " micro-batches does '" + got + "' and should do '" +
                               want + "'";
  if (got.empty()) learn::wrong(sentence + "; the lines are still to be written.");
  if (got == order(micro_batches, micro_batches))
    learn::wrong(sentence + "; do all micro-batches go forward first? Then the activations of all must be kept.");
  if (got == order(stage - 1, micro_batches))
    learn::wrong(sentence + "; is it the last stage that goes ahead? The first one waits longest for a backward pass.");
  if (got == order(stages - stage - 1, micro_batches))
    learn::wrong(sentence + "; is stage k one micro-batch short? It goes stages - k ahead of its first backward pass.");
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  for (int stages = 1; stages <= 4; ++stages)
    for (int stage = 1; stage <= stages; ++stage)
      for (int micro_batches : {4, 1, 3, 12}) check(stage, stages, micro_batches);
}
