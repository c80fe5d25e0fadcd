// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// The gradient is (3, -4), so its norm is 5.
#include "../../verdict.hpp"

using learn::number;

namespace {

void check(double scale, double max_norm) {
  std::vector<double> p{0, 0};
  step(p, {3 * scale, -4 * scale}, 0.5, scale, max_norm);
  double const got = std::hypot(p[0], p[1]), want = 0.5 * std::min(5.0, max_norm);
  if (learn::same(got, want) && learn::same(p[0] * 4, -p[1] * 3)) return;
  std::string const sentence = "a gradient of norm 5, max_norm " + number(max_norm) + ", lr 0.5, loss scale " +
                               number(scale) + ": the step is " + number(got) + " long and should be " + number(want);
  if (scale > 1 && learn::same(got, 0.5 * max_norm / scale)) learn::wrong(sentence + "; the scale makes it shorter.");
  if (learn::same(got, 2.5)) learn::wrong(sentence + "; is the clipping gone?");
  if (learn::same(got, 0.5 * max_norm)) learn::wrong(sentence + "; is a short gradient made longer?");
  learn::wrong(sentence + ".");
}

}  // namespace

int main() {
  for (double const scale : {1.0, 1024.0})
    for (double const max_norm : {1.0, 10.0}) check(scale, max_norm);
}
