// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

#include "../../verdict.hpp"

using learn::number;

int main() {
  std::vector<half> w{half(1.f), half(-0.5f)};
  half_descent opt(w);
  for (int t = 0; t < 1000; ++t) opt.step({half(1.f), half(-1.f)}, 1e-4f);
  // Between 0.5 and 1 the numbers of half are 2^-11 apart.
  double const got[] = {double(float(w[0])), double(float(w[1]))}, want[] = {0.9, -0.4};
  for (int i = 0; i < 2; ++i) {
    double const start = i == 0 ? 1 : -0.5;
    if (std::abs(got[i] - want[i]) <= 0x1p-11) continue;
    std::string const sentence = "after 1000 steps of 0.0001, a weight of " + number(start) + " is " + number(got[i]) +
                                 " and should be " + number(want[i]);
    if (got[i] == start) learn::wrong(sentence + "; every step is rounded away.");
    if (std::abs(got[i] - want[i] + start) <= 0x1p-10) learn::wrong(sentence + "; does the copy start at 0?");
    learn::wrong(sentence + ".");
  }
}
