// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// A step of 1 s: products, other layers, the optimizer.
#include "../verdict.hpp"

namespace {

void check(learn::path const& seconds, learn::path const& faster) {
  double before = 0, after = 0, factors = 0, weighted = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    before += seconds[i], after += seconds[i] / faster[i];
    factors += faster[i] / double(seconds.size()), weighted += seconds[i] * faster[i];
  }
  double const got = speedup(seconds, faster), want = before / after;
  if (learn::same(got, want)) return;
  std::string sentence = "parts of";
  for (double one : seconds) sentence += " " + learn::number(one);
  sentence += " s become faster by";
  for (double one : faster) sentence += " " + learn::number(one);
  sentence += ": speedup() returns " + learn::number(got) + " and should return " + learn::number(want);
  if (got == 0) learn::wrong(sentence + "; the lines are still to be written.");
  if (learn::same(got, factors))
    learn::wrong(sentence + "; is it the mean of the factors? Times add up, factors do not.");
  if (learn::same(got, weighted / before))
    learn::wrong(sentence + "; is it the mean of the factors by time? Add the times that are left.");
  if (learn::same(got, after / before)) learn::wrong(sentence + "; is it the inverse?");
  if (learn::same(got, after)) learn::wrong(sentence + "; is it the time that is left?");
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  check({0.5, 0.2, 0.1}, {8, 1, 1});
  check({0.3, 0.2}, {1, 1});
  check({2}, {4});
  check({0.9, 0.1}, {1e9, 1});
}
