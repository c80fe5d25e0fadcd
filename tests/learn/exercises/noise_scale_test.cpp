// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Squares that are |G|^2 + S / b exactly, so the answer is known.
#include "../verdict.hpp"

namespace {

void check(double gradient, double noise, double small, double big) {
  double const of_small = gradient + noise / small, of_big = gradient + noise / big, want = noise / gradient;
  double const got = noise_scale(small, of_small, big, of_big);
  if (learn::same(got, want)) return;
  std::string const sentence = "|G|^2 = " + learn::number(gradient) + ", S = " + learn::number(noise) +
                               ", batches of " + learn::number(small) + " and " + learn::number(big) +
                               ": noise_scale() returns " + learn::number(got) + " and should return " +
                               learn::number(want);
  learn::mistake const mistakes[] = {
      {"the lines are still to be written.", {0}},
      {"is it the inverse?", {1 / want}},
      {"is it S alone? Divide by |G|^2.", {noise}},
      {"is |g_B|^2 taken for |G|^2? It has noise, too.", {noise / of_big}},
      {"is |g_b|^2 taken for |G|^2? It has noise, too.", {noise / of_small}},
      {"is the difference of the squares divided by the difference of the batches? Noise falls as 1 / b.",
       {(of_small - of_big) / (big - small) / gradient}},
      {"is S negative? The smaller batch has the larger square.", {-want}},
  };
  for (auto const& one : mistakes)
    if (learn::same(got, one.values[0])) learn::wrong(sentence + "; " + one.question);
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  check(0.5, 40, 16, 256);
  check(2, 3, 1, 7);
}
