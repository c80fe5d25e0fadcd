// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "optimizer.hpp"
#include "parts/batches.hpp"
#include "parts/console.hpp"
#include "parts/dataset.hpp"
#include "parts/history.hpp"
#include "parts/network.hpp"
#include "parts/options.hpp"
#include "parts/program.hpp"
#include "parts/random.hpp"
#include "parts/share.hpp"

#include <descent/descent.hpp>

#include <cstdint>
#include <utility>

namespace example {

namespace ds = descent;

/// Mean loss and percentage of correct answers over the images.
template <class Device, class Value>
std::pair<double, double> test(network<Device, Value>& net, labelled_images const& images, auto& batches,
                               share const& mine) {
  for (auto const& batch : batches.epoch()) net.forward(rows_of(batch, images));
  auto const [loss, correct] = net.take_totals();
  return {mine.sum(loss) / images.count(), 100 * mine.sum(double(correct)) / images.count()};
}

template <class Value, class Device>
network<Device, Value> initial_network(Device& device, options const& o, dataset const& data) {
  random_source initial{o.seed, 0};
  return {device, data.train.features, o.hidden, data.classes, o.batch, initial};
}

template <class Policy> inline constexpr bool wants_marks = requires { requires Policy::overlaps; };

/// The training loop, for a rule of the library or an any_rule. Several ranks or micro-batches need a rule of the
/// library, and policies.
template <class Value, class Device, class Rule, class... Policies>
history train(Device& device, network<Device, Value>& net, options const& o, std::string const& name, Rule const& rule,
              dataset const& data, console& out, share const& mine = {}, Policies... policies) {
  ds::workers const workers{.threads = o.workers};
  auto batches = batches_of(data.train, {.size = o.batch}, reshuffled{o.seed}, device, workers, mine);
  auto test_batches = batches_of(data.test, {.size = o.batch}, ds::sequential{}, device, workers, mine);

  auto const steps = total_steps(o, data.train);
  auto opt = make_optimizer(net.parameters(), rule, o.rate(rule, steps), o.clip, device.backend(), policies...);

  history result{name, {}};
  typename Device::stopwatch all_of_it{device}, optimizer_only{device};
  std::int64_t step = 0;

  for (int epoch = 1; step < steps; ++epoch) {
    std::int64_t seen = 0;

    all_of_it.start();
    for (auto const& batch : batches.epoch()) {
      int const rows = int(batch.global_size());
      for (int k = 0; k < mine.pieces; ++k) {
        net.forward(rows_of(batch, data.train).part(mine.own_piece(rows, k)));
        net.backward(double(rows) / mine.parts(), k > 0, [&](std::size_t layer) {  // the mean over parts is the batch's
          if constexpr ((wants_marks<Policies> || ...)) opt.ready(2 * layer), opt.ready(2 * layer + 1);
        });

        optimizer_only.start();
        opt.step();
        optimizer_only.stop();
      }
      seen += rows;
      out.progress(++step, batches.report().waited);
      if (step == steps) break;
    }
    all_of_it.stop();

    auto const [loss, correct] = net.take_totals();
    auto const [test_loss, test_accuracy] = test(net, data.test, test_batches, mine);
    auto const report = opt.report();
    result.epochs.push_back({.epoch = epoch,
                             .steps = step,
                             .train_loss = mine.sum(loss) / seen,
                             .train_accuracy = 100 * mine.sum(double(correct)) / seen,
                             .test_loss = test_loss,
                             .test_accuracy = test_accuracy,
                             .learning_rate = report.learning_rate,
                             .gradient_norm = report.grad_norm,
                             .skipped = report.skipped,
                             .seconds = all_of_it.take_seconds(),
                             .optimizer_seconds = optimizer_only.take_seconds()});
    out.end_epoch(result.last());
  }
  if (o.workers > 0) out.say("data: " + batches.report().bottleneck());
  return result;
}

/// The same with a new network.
template <class Value, class Device, class Rule>
history train(Device& device, options const& o, std::string const& name, Rule const& rule, dataset const& data,
              console& out) {
  auto net = initial_network<Value>(device, o, data);
  return train(device, net, o, name, rule, data, out);
}

/// The same with a storage type known only at run time.
template <class Device>
history train_with_options(options const& o, optimizer_choice const& optimizer, dataset const& data, console& out) {
  Device device;
  auto const run = [&]<class Value>(Value) {
    return train<Value>(device, o, optimizer.label, optimizer.rule, data, out);
  };
  switch (o.storage) {
    case precision::half: return run(ds::half{});
    case precision::bfloat16: return run(ds::bfloat16{});
    default: return run(0.f);
  }
}

}  // namespace example
