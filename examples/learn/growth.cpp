// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// A rate that falls, or a batch that grows: docs/learn/large_batches.md.
#include "experiment.hpp"
#include "run.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

namespace ds = descent;
using namespace example;

/// Adds the gradient of a micro-batch.
struct micro_batch {
  std::vector<double> updates{};  // before it

  void operator()(auto& net, auto& opt, image_rows const& batch, int) {
    updates.push_back(double(opt.report().step));
    net.forward(batch);
    net.backward(batch.count, true, [](std::size_t) {});
  }
};

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv};
    constexpr int epoch = 1438 / 32;
    learn::settings const s{.steps = 30 * epoch, .batch = 32, .network = "relu50", .seed = e.seed};
    // snippet: growth
    ds::multi_step<2> const rate{.initial = 0.4, .factor = 0.25, .at = {10 * epoch, 20 * epoch}};
    ds::multi_step<2> const by_updates{.initial = 0.4, .factor = 0.25, .at = {10 * epoch, 10 * epoch + 10 * epoch / 4}};
    auto const growth = ds::grow_batch(ds::batch_growth<ds::multi_step<2>>{by_updates, 32, 512, 32});
    auto const constant = ds::learning_rate(ds::constant{0.4});
    auto const falling = ds::learning_rate(rate);
    // end
    panel of_epochs{"mean loss of an epoch", "epoch", axis::logarithmic, {}};
    panel of_updates{"the same against updates", "updates", axis::logarithmic, {}};
    std::puts("                   loss in epoch 10, 20, 30      test   updates");
    auto const run = [&](char const* name, bool circles, auto const& policy) {
      micro_batch micro;
      auto const r = learn::train_with(s, micro, ds::sgd{.lr = 0.4}, ds::zero_grad{}, policy);
      curve c{name, {}}, u = c;
      for (std::size_t e = 0; e < 30; ++e) {
        auto const first = r.loss.begin() + std::ptrdiff_t(e) * epoch;
        c.points.push_back({double(e) + 1, std::accumulate(first, first + epoch, 0.) / epoch});
        u.points.push_back({micro.updates[(e + 1) * epoch - 1], c.points.back().y});
      }
      auto const& y = c.points;
      std::printf("%-25s %.4f %.4f %.4f  %5.1f %%  %5d\n", name, y[9].y, y[19].y, y[29].y, r.accuracy,
                  int(r.report.step));
      of_epochs.curves.push_back(circles ? curve{name, {}, y} : c), of_updates.curves.push_back(u);
      return std::pair(y, r.report.step);
    };
    run("rate and batch stay", false, constant);
    auto const [a, many] = run("rate falls at 10 and 20", false, falling);
    auto const [b, few] = run("batch grows at 10 and 20", true, growth);
    for (std::size_t k = 0; k < 30; ++k)
      e.claim(std::fabs(std::log(a[k].y / b[k].y)) < 0.3, "a batch that grows has the loss of a rate that falls");
    e.claim(few < many / 2, "with less than half of the updates");
    e.write("Growing the batch instead of decaying the rate", {of_epochs, of_updates});
  });
}
