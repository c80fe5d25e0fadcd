// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/claim.hpp"
#include "../parts/cpu.hpp"
#include "../parts/dataset.hpp"
#include "../parts/layer_sizes.hpp"
#include "../parts/network.hpp"
#include "../parts/random.hpp"

#include <descent/descent.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// The run that programs of the course share: a small network on the embedded handwritten digits.
namespace example::learn {

struct settings {
  int steps = 300, batch = 32;
  std::string network = "deep";
  std::uint64_t seed = 1;
  double goal = 100;   // percentage of the test images: the run ends when it is reached
  int look_every = 0;  // steps between two looks at the test images, 0: only at the end
};

struct result {
  std::vector<double> loss{};  // of each batch
  double accuracy = 0;         // percentage of the test images, at the end
  int steps = 0;               // until the goal, or all
  ds::step_report report{};
};

/// Trains with values stored as Value; `recipe` is a rule and policies.
template <class Value = float> result train(settings const& s, auto const&... recipe) {
  static dataset const data = embedded_digits();
  cpu device;
  random_source initial{s.seed, 0};
  network<cpu, Value> net{device, data.train.features, parse_network(s.network), data.classes, s.batch, initial};
  ds::optimizer opt{net.parameters(), recipe...};
  net.loss_scale = opt.loss_scale_pointer();
  auto batches = batches_of(data.train, {s.batch, ds::last_batch::drop}, reshuffled{s.seed}, device);
  auto const test = [&] {
    auto all = batches_of(data.test, {.size = s.batch}, ds::sequential{}, device);
    for (auto const& batch : all.epoch()) net.forward(rows_of(batch, data.test));
    return 100. * double(net.take_totals().correct) / data.test.count();
  };
  result r;
  for (int t = 1; t <= s.steps && r.accuracy < s.goal; ++t) {
    net.forward(rows_of(batches.next(), data.train));
    net.backward();
    opt.step();
    r.loss.push_back(net.take_totals().loss / s.batch);
    r.steps = t;
    if (s.look_every > 0 && t % s.look_every == 0) r.accuracy = test();
  }
  if (s.look_every == 0) r.accuracy = test();
  r.report = opt.report();
  return r;
}

}  // namespace example::learn
