// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Batch normalization in half, with sums in float and in half: docs/learn/mixed_precision.md.
#include "half_norm.hpp"
#include "seeds.hpp"

#include <cstdint>
#include <cstdio>
#include <vector>

namespace ds = descent;
using namespace example;

/// Percentage of the test images after 100 updates. Pixels go from 0 to 1, or from 0 to 16 as they are stored.
template <class Norm> double trained(bool stored, int batch, std::uint64_t seed) {
  dataset data = learn::data();
  if (stored) data.train.brightest = data.test.brightest = 1;
  learn::normalized_network<float, Norm> net{batch, batch, seed};
  ds::optimizer opt{net.parameters(), ds::sgd{.lr = 0.1, .momentum = 0.9}};
  auto batches = batches_of(data.train, {batch, ds::last_batch::drop}, reshuffled{seed}, net.device);
  for (int t = 1; t <= 100; ++t) {
    net.forward(rows_of(batches.next(), data.train), true);
    net.backward(batch);
    opt.step();
  }
  return net.accuracy(data.test);
}

template <class Norm> double show(learn::experiment const& e, bool stored, int batch, char const* name, curve& line) {
  auto const of =
      learn::spread_of(learn::with_seeds(e, [&](std::uint64_t seed) { return trained<Norm>(stored, batch, seed); }));
  std::printf("0 to %-3d %9d   %-18s %5.1f %% (%4.1f to %4.1f)\n", stored ? 16 : 1, batch, name, of.mean, of.low,
              of.high);
  if (stored) learn::add(line, batch, of);
  return of.mean;
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Batch normalization in half and in float.", .seeds = "8"}};
    panel shown{"pixels from 0 to 16: test accuracy in %", "batch", axis::linear, {}, x_axis::doubling};
    shown.curves = {{"float", {}}, {"half, sums in float", {}}, {"half, sums in half", {}}};
    std::puts("pixels       batch   data    sums       test accuracy, mean (range)");
    for (bool stored : {false, true})
      for (int batch : {32, 256, 512, 1024}) {
        if (!stored && batch > 32 && batch < 1024) continue;
        double const exact = show<learn::batch_norm<float>>(e, stored, batch, "float   float", shown.curves[0]);
        double const mixed = show<learn::half_norm<float>>(e, stored, batch, "half    float", shown.curves[1]);
        double const half = show<learn::half_norm<ds::half>>(e, stored, batch, "half    half", shown.curves[2]);
        e.claim(close(mixed, exact, 0.02), "half with sums in float learns as float does");
        if (!stored || batch == 32) e.claim(close(half, exact, 0.02), "so do sums in half while they do not overflow");
        if (stored && batch == 1024) e.claim(half < exact - 30, "sums above the largest number of half fail");
      }
    e.write("Batch normalization in half", {shown});
  });
}
