// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The answers are checked by steps of gradient descent, and by the rates next to the best one.
#include "../verdict.hpp"

namespace {

/// The slowest of all axes: the largest |1 - lr h|.
double slowest(double lr, double smallest, double largest) {
  return std::max(std::abs(1 - lr * smallest), std::abs(1 - lr * largest));
}

void check(double smallest, double largest) {
  auto const [lr, factor] = rate_for(smallest, largest);
  double const want = 2 / (smallest + largest), shrinks = slowest(want, smallest, largest);
  std::string const where = "curvatures from " + learn::number(smallest) + " to " + learn::number(largest) + ": ";
  if (!learn::same(lr, want)) {
    std::string const sentence = where + "lr is " + learn::number(lr) + " and should be " + learn::number(want);
    if (lr == 0 && factor == 0) learn::wrong(sentence + "; the lines are still to be written.");
    if (learn::same(lr, 1 / largest)) learn::wrong(sentence + "; is it 1 / h_max? Twice as far is still safe there.");
    if (learn::same(lr, 2 / largest))
      learn::wrong(sentence + "; is it 2 / h_max? Then the steepest axis swings for ever.");
    if (learn::same(lr, 1 / (smallest + largest))) learn::wrong(sentence + "; is the 2 missing?");
    if (slowest(lr, smallest, largest) >= 1) learn::wrong(sentence + "; it diverges.");
    learn::wrong(sentence + ": the slowest axis keeps " + learn::number(slowest(lr, smallest, largest)) +
                 " of its error instead of " + learn::number(shrinks) + ".");
  }
  if (learn::same(factor, shrinks)) return;
  std::string const sentence =
      where + "the factor is " + learn::number(factor) + " and should be " + learn::number(shrinks);
  double const k = largest / smallest, momentum = (std::sqrt(k) - 1) / (std::sqrt(k) + 1);
  if (learn::same(factor, momentum))
    learn::wrong(sentence + "; is it the factor with momentum, which has the root of k?");
  if (learn::same(factor, shrinks * shrinks)) learn::wrong(sentence + "; is it the factor of the loss, its square?");
  if (learn::same(factor, 1 - shrinks)) learn::wrong(sentence + "; is it what is lost instead of what is left?");
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  check(1, 10);
  check(0.01, 2);
  check(3, 3);
}
