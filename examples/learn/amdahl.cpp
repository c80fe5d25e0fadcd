// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// What a step gains if its products become faster: docs/learn/tensor_cores.md.
#include "../parts/cpu.hpp"
#include "../parts/dataset.hpp"
#include "../parts/layer_sizes.hpp"
#include "../parts/network.hpp"
#include "../parts/random.hpp"
#include "experiment.hpp"

#include <descent/descent.hpp>

#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

// snippet: amdahl
/// How many times as fast the whole is if a share of it becomes k times as fast (Amdahl 1967).
double amdahl(double share, double k) { return 1 / (1 - share + share / k); }
// end

constexpr double factors[] = {2, 8, 15, std::numeric_limits<double>::infinity()};

/// The host, with a stopwatch on the products.
struct timed : cpu {
  stopwatch products{*this};

  void multiply(double alpha, auto a, auto b, auto c) {
    products.start();
    cpu::multiply(alpha, a, b, c);
    products.stop();
  }
};

void measure(int batch, std::string const& layers) {
  auto const data = embedded_digits();
  timed d;
  random_source initial{1, 0};
  network<timed, float> net{d, data.train.features, parse_network(layers), data.classes, batch, initial};
  ds::optimizer opt{net.parameters(), ds::adamw{}};
  auto batches = batches_of(data.train, {batch, ds::last_batch::drop}, reshuffled{1}, d);
  cpu::stopwatch forward{d}, backward{d}, update{d};
  // snippet: step
  for (int t = 0; t < 50; ++t) {
    auto const rows = rows_of(batches.next(), data.train);
    forward.start(), net.forward(rows), forward.stop();
    backward.start(), net.backward(), backward.stop();
    update.start(), opt.step(), update.stop();
  }
  // end
  double const times[] = {forward.take_seconds(), backward.take_seconds(), update.take_seconds()};
  double const all = times[0] + times[1] + times[2], share = d.products.take_seconds() / all;
  std::printf("%-17s %6d %7.1f %% %7.1f %% %7.1f %% %7.1f %%", layers.c_str(), batch, 100 * times[0] / all,
              100 * times[1] / all, 100 * times[2] / all, 100 * share);
  for (double k : factors) std::printf(" %6.2f", amdahl(share, k));
  std::puts("");
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::options const options{
        argc,
        argv,
        {.what = "Shows what a step gains if its products become faster; `measure` times the parts of a step first.",
         .picture = false,
         .figures = false,
         .words = "[measure]"}};
    if (!options.words.empty()) {
      if (options.words != std::vector<std::string>{"measure"})
        fail("amdahl takes the word \"measure\" or nothing, not " + example::quoted(joined(options.words, " ")));
      std::puts("hidden layers      batch   forward  backward    update  products    2 x    8 x   15 x at once");
      for (int batch : {8, 32, 128, 512}) measure(batch, "relu1000,relu1000");
      return;
    }
    std::puts("products    2 x as fast   8 x   15 x   at once");
    for (double share : {0.2, 0.5, 0.8, 0.9, 0.95, 0.99}) {
      std::printf("%6.0f %%   ", 100 * share);
      for (double k : factors) std::printf(" %8.2f", amdahl(share, k));
      std::puts("");
    }
    claim(close(amdahl(0.9, factors[3]), 10, 1e-12), "the limit is 1 / (1 - share)");
  });
}
