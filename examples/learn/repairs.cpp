// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// What helps if all training images are one batch: docs/learn/large_batches.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ds = descent;
using namespace example;

// snippet: noise
/// Multiplies the loss of each example by z ~ N(1, deviation^2).
struct noisy_losses {
  float deviation;

  void operator()(auto& net, auto&, image_rows const& batch, int t) const {
    net.forward(batch);
    auto& dz = net.layers().back().output_gradient;
    auto const classes = dz.size() / std::size_t(batch.count);
    for (std::size_t i = 0; i < dz.size(); ++i) dz[i] *= ds::loss_weight(0, t, int(i / classes), deviation);
    net.backward();
  }
};
// end

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{
        argc, argv, {.what = "Shows what helps if all training images are one batch.", .seeds = "3"}};
    panel few{"test accuracy in %, 30 updates", "updates", axis::nines, {}, x_axis::from_zero};
    panel more = few;
    more.title = "test accuracy in %, 330 updates";
    auto const row = [&](char const* name, char const* label, int updates, auto const& gradient, auto const& rule) {
      auto const c = learn::mean_of(learn::with_seeds(e, [&](std::uint64_t seed) {
        auto const r = learn::train_with({.steps = updates, .batch = 1438, .network = "relu50", .seed = seed,
                                          .look_every = updates / 10}, gradient, rule);
        return learn::accuracy_of(label, r.looks);
      }));
      auto const& [x, low, high] = c.bars.back();
      double const mean = c.points.back().y;
      std::printf("%-36s %3.0f updates: %4.1f %% (%4.1f to %4.1f)\n", name, x, mean, low, high);
      (updates == 30 ? few : more).curves.push_back(c);
      return mean;
    };
    learn::whole_batch const whole;
    double const same = row("SGD, the rate of a small batch", "SGD 0.05", 30, whole, ds::sgd{.lr = 0.05});
    double const sgd = row("SGD, its best rate 0.5", "SGD 0.5", 30, whole, ds::sgd{.lr = 0.5});
    double const momentum =
        row("momentum 0.9, rate 0.5", "momentum 0.5", 30, whole, ds::sgd{.lr = 0.5, .momentum = 0.9});
    double const adam = row("Adam, rate 0.05", "Adam 0.05", 30, whole, ds::adam{.lr = 0.05});
    double const lars = row("LARS, rate 10", "LARS 10", 30, whole, ds::lars{.lr = 10});
    double const lamb = row("LAMB, rate 0.05", "LAMB 0.05", 30, whole, ds::lamb{.lr = 0.05});
    double const novograd = row("NovoGrad, rate 0.1", "NovoGrad 0.1", 30, whole, ds::novograd{.lr = 0.1});
    double const equal = row("SGD, rate 0.05, updates of batch 128", "SGD 0.05", 330, whole, ds::sgd{.lr = 0.05});
    double const longer = row("SGD, rate 0.5, updates of batch 128", "SGD 0.5", 330, whole, ds::sgd{.lr = 0.5});
    double const noise = row("the same, losses times N(1, 1)", "with noise", 330, noisy_losses{1}, ds::sgd{.lr = 0.5});
    e.claim(same < 65 && sgd > same + 20, "most of the loss is a rate that is too small");
    e.claim(std::min({momentum, adam, lamb, novograd}) > sgd, "momentum or a rate for each layer helps further");
    e.claim(std::max({adam, lars, lamb, novograd}) < momentum + 2, "no rule is far ahead of momentum with a good rate");
    e.claim(equal > 88 && longer > 94, "so do more updates");
    e.claim(noise > longer - 2 && noise < longer + 2, "noise on the losses changes little here");
    e.write("What helps if all images are one batch; range of the seeds", {few, more});
  });
}
