// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// A rate that falls, or a batch that grows: docs/learn/batch_noise.md.
#include "seeds.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

constexpr int epoch = 1438 / 32, epochs = 30;

/// Adds the gradient of a micro-batch.
struct micro_batch {
  std::vector<double> updates{};  // before it

  void operator()(auto& net, auto& opt, image_rows const& batch, int) {
    updates.push_back(double(opt.report().step));
    net.forward(batch);
    net.backward(batch.count, true, [](std::size_t) {});
  }
};

/// The loss of each epoch, over epochs and over updates.
struct run_of_seed {
  curve by_epoch, by_update;
  double accuracy, updates;
};

run_of_seed train(std::string const& name, std::uint64_t seed, auto const& policy) {
  micro_batch micro;
  auto const r = learn::train_with({.steps = epochs * epoch, .batch = 32, .network = "relu50", .seed = seed}, micro,
                                   ds::sgd{.lr = 0.4}, ds::zero_grad{}, policy);
  run_of_seed done{{name, {}}, {name, {}}, r.accuracy, double(r.report.step)};
  for (std::size_t e = 0; e < epochs; ++e) {
    auto const first = r.loss.begin() + std::ptrdiff_t(e) * epoch;
    done.by_epoch.points.push_back({double(e) + 1, std::accumulate(first, first + epoch, 0.) / epoch});
    done.by_update.points.push_back({micro.updates[(e + 1) * epoch - 1], done.by_epoch.points.back().y});
  }
  return done;
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Compares a falling rate with a growing batch.", .seeds = "3"}};
    // snippet: growth
    ds::multi_step<2> const rate{.initial = 0.4, .factor = 0.25, .at = {10 * epoch, 20 * epoch}};
    ds::multi_step<2> const by_updates{.initial = 0.4, .factor = 0.25, .at = {10 * epoch, 10 * epoch + 10 * epoch / 4}};
    auto const growth = ds::grow_batch(ds::batch_growth<ds::multi_step<2>>{by_updates, 32, 512, 32});
    auto const constant = ds::learning_rate(ds::constant{0.4});
    auto const falling = ds::learning_rate(rate);
    // end
    panel of_epochs{"mean loss of an epoch, range of the seeds", "epoch", axis::logarithmic, {}};
    panel of_updates{"the same against updates", "updates", axis::logarithmic, {}};
    std::puts("                   loss in epoch 10, 20, 30      test   updates");
    auto const run = [&](char const* name, auto const& policy) {
      auto const all = learn::with_seeds(e, [&](std::uint64_t seed) { return train(name, seed, policy); });
      std::vector<curve> by_epoch, by_update;
      double accuracy = 0;
      for (auto const& one : all) {
        by_epoch.push_back(one.by_epoch), by_update.push_back(one.by_update);
        accuracy += one.accuracy / double(all.size());
      }
      of_epochs.curves.push_back(learn::mean_of(by_epoch)), of_updates.curves.push_back(learn::mean_of(by_update));
      auto const& y = of_epochs.curves.back().points;
      std::printf("%-25s %.4f %.4f %.4f  %5.1f %%  %5.0f\n", name, y[9].y, y[19].y, y[29].y, accuracy, all[0].updates);
      return all[0].updates;
    };
    run("rate and batch stay", constant);
    double const many = run("rate falls at 10 and 20", falling), few = run("batch grows at 10 and 20", growth);
    for (std::size_t k = 0; k < epochs; ++k)
      e.claim(std::fabs(std::log(of_epochs.curves[1].points[k].y / of_epochs.curves[2].points[k].y)) < 0.3,
              "a batch that grows has the loss of a rate that falls");
    e.claim(few < many / 2, "with less than half of the updates");
    e.write("Growing the batch instead of decaying the rate", {of_epochs, of_updates});
  });
}
