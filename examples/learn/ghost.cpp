// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Batch normalization of a large batch, whole and in parts: docs/learn/batch_noise.md.
#include "batch_norm.hpp"
#include "finite_differences.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace ds = descent;
using namespace example;

/// Of derivatives by backward() from finite differences.
double gradient_error() {
  learn::normalized_network<double> net{96, 32, 1};
  auto const images = rows_of(learn::data().train).part({0, 96});
  auto const loss = [&] { return net.forward(images, true); };
  loss();
  net.backward(96);
  return std::max({learn::largest_difference(net.first.weight, net.first.weight_gradient, loss, 17),
                   learn::largest_difference(net.norm.gain, net.norm.gain_gradient, loss, 3),
                   learn::largest_difference(net.norm.shift, net.norm.shift_gradient, loss, 3),
                   learn::largest_difference(net.second.weight, net.second.weight_gradient, loss, 17)});
}

/// Percentages of the test images after every ten of 100 updates.
std::vector<double> trained(int batch, int part, std::uint64_t seed) {
  learn::normalized_network<float> net{batch, part, seed};
  ds::optimizer opt{net.parameters(), ds::sgd{.lr = 0.1, .momentum = 0.9}};
  auto batches = batches_of(learn::data().train, {batch, ds::last_batch::drop}, reshuffled{seed}, net.device);
  std::vector<double> accuracy;
  for (int t = 1; t <= 100; ++t) {
    net.forward(rows_of(batches.next(), learn::data().train), true);
    net.backward(batch);
    opt.step();
    if (t % 10 == 0) accuracy.push_back(net.accuracy(learn::data().test));
  }
  return accuracy;
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{
        argc, argv, {.what = "Compares batch normalization of a large batch as a whole and in parts.", .seeds = "3"}};
    double const error = gradient_error();
    std::printf("gradients and finite differences differ by at most %.1e\n", error);
    e.claim(error < 1e-6, "backward() is the derivative of forward()");
    std::puts("                             10 updates   100 updates");
    std::vector<double> after_100;
    panel shown{"test accuracy in %, range of the seeds", "updates", axis::nines, {}, x_axis::from_zero};
    for (auto const& [batch, part] : {std::pair{32, 32}, std::pair{1024, 32}, std::pair{1024, 1024}}) {
      std::printf("batch %4d in parts of %4d", batch, part);
      auto const c = learn::mean_of(learn::with_seeds(e, [&, batch = batch, part = part](std::uint64_t seed) {
        curve run{std::to_string(batch) + " in parts of " + std::to_string(part), {}};
        for (double y : trained(batch, part, seed)) run.points.push_back({10. * double(run.points.size() + 1), y});
        return run;
      }));
      std::printf("       %4.1f %%       %4.1f %%\n", c.points[0].y, c.points[9].y);
      after_100.push_back(c.points[9].y), shown.curves.push_back(c);
    }
    auto const [low, high] = std::ranges::minmax(after_100);
    e.claim(low > 93 && high - low < 2.5, "all three learn, and parts make no large difference here");
    e.write("Ghost batch normalization", {shown});
  });
}
