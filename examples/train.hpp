// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "optimizer.hpp"
#include "parts/console.hpp"
#include "parts/dataset.hpp"
#include "parts/history.hpp"
#include "parts/network.hpp"
#include "parts/options.hpp"
#include "parts/program.hpp"
#include "parts/random.hpp"
#include "parts/share.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace example {

namespace ds = descent;

/// Mean loss and percentage of correct answers over the images.
template <class Device, class Value>
std::pair<double, double> test(network<Device, Value>& net, image_source<Device> const& images, int batch,
                               share const& mine) {
  auto const [first, count] = mine.all_pieces(images.count);
  for (int done = 0; done < count; done += batch) net.forward(images, first + done, std::min(batch, count - done));
  auto const [loss, correct] = net.take_totals();
  return {mine.sum(loss) / images.count, 100 * mine.sum(double(correct)) / images.count};
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
  image_source<Device> train_images{data.train}, test_images{data.test};
  random_source shuffling{o.seed, 1};

  auto const steps = total_steps(o, data.train);
  auto opt = make_optimizer(net.parameters(), rule, o.rate(rule, steps), o.clip, device.backend(), policies...);

  history result{name, {}};
  typename Device::stopwatch all_of_it{device}, optimizer_only{device};
  auto order = in_order(std::size_t(train_images.count));
  std::int64_t step = 0;

  for (int epoch = 1; step < steps; ++epoch) {
    shuffling.shuffle(order);
    device.assign(train_images.order, order);
    int seen = 0;

    all_of_it.start();
    while (seen < train_images.count && step < steps) {
      int const rows = std::min(o.batch, train_images.count - seen);
      for (int k = 0; k < mine.pieces; ++k) {
        auto const [first, count] = mine.piece(rows, k);
        net.forward(train_images, seen + first, count);
        net.backward(double(rows) / mine.parts(), k > 0, [&](std::size_t layer) {  // the mean over parts is the batch's
          if constexpr ((wants_marks<Policies> || ...)) opt.ready(2 * layer), opt.ready(2 * layer + 1);
        });

        optimizer_only.start();
        opt.step();
        optimizer_only.stop();
      }
      seen += rows;
      out.progress(++step);
    }
    all_of_it.stop();

    auto const [loss, correct] = net.take_totals();
    auto const [test_loss, test_accuracy] = test(net, test_images, o.batch, mine);
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
