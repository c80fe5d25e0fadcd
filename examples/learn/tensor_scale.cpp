// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Gradients of a tensor in 8 bits, with and without a scale: docs/learn/formats.md.
#include "experiment.hpp"
#include "number_format.hpp"

#include <cmath>
#include <cstdio>

using namespace example;
using namespace example::learn;

/// Stores the gradients times a scale, and prints them divided by it. Returns the largest relative error.
double store(char const* name, double scale, auto format) {
  std::printf("%-22s", name);
  double worst = 0;
  for (double g : {3e-6, -4e-7, 5e-8, -6e-9}) {
    double const stored = format.round(scale * g) / scale;
    std::printf(" %10.3g", stored);
    worst = std::fmax(worst, std::fabs(stored / g - 1));
  }
  std::printf(" %9.0f %%\n", 100 * worst);
  return worst;
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{
        argc, argv, learn::options::only_help("Stores the gradients of a tensor in 8 bits, with and without a scale.")};
    std::puts("gradients                   3e-06     -4e-07      5e-08     -6e-09  largest error");
    store("half", 1, binary16), store("bfloat16", 1, brain16), store("e5m2", 1, e5m2), store("e4m3", 1, e4m3);
    // snippet: scale
    double const amax = 3e-6;  // the largest magnitude in the tensor
    double const wide = store("e5m2, 57344 / amax", e5m2.largest() / amax, e5m2);
    double const fine = store("e4m3, 448 / amax", e4m3.largest() / amax, e4m3);
    double const uniform = store("int8, 127 / amax", 127 / amax, fixed{8, 0});
    // end
    claim(wide < 0.13 && fine < 0.07, "with a scale, fp8 errs by half a spacing at most");
    claim(uniform == 1, "and fixed point loses what is small beside the largest");
  });
}
