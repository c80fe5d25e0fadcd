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
#include "parts/run_file.hpp"
#include "parts/share.hpp"
#include "parts/stop.hpp"
#include "parts/training_state.hpp"

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

/// The training loop, for a rule of the library with policies, or an any_rule with an opt_level. Several ranks or
/// micro-batches need a rule of the library.
template <class Value, class Device, class Rule, class... Policies>
history train(Device& device, network<Device, Value>& net, options const& o, std::string const& name, Rule const& rule,
              dataset const& data, console& out, share const& mine = {}, Policies... policies) {
  ds::workers const workers{.threads = o.workers};
  auto batches = batches_of(data.train, {.size = o.batch}, reshuffled{o.seed}, device, workers, mine);
  auto test_batches = batches_of(data.test, {.size = o.batch}, ds::sequential{}, device, workers, mine);

  auto const steps = total_steps(o, data.train);
  auto opt = make_optimizer(net.parameters(), rule, o.rate(rule, steps), o.clip, device.backend(), policies...);
  if (scales_loss(o.level)) net.loss_scale = opt.loss_scale_pointer();

  training_state at;
  run_file const file{o, data};
  if (file.resumes()) {
    file.load(opt, at);
    go_to(at.place, batches);
    net.set_totals(at.totals);
    out.resume(at.epochs, at.step);
    if (at.step == steps && file.saves()) file.save(opt, at);
  }
  typename Device::stopwatch all_of_it{device}, optimizer_only{device};

  // Takes the measurements of the steps since the last call.
  auto const measure = [&, first = at.step, skipped = at.skipped] {
    at.seconds += all_of_it.take_seconds();
    at.optimizer_seconds += optimizer_only.take_seconds();
    if (at.step == first) return;
    auto const report = opt.report();
    if (report.skipped < at.step - first) at.learning_rate = report.learning_rate;
    at.gradient_norm = report.grad_norm;
    at.skipped = skipped + report.skipped;
  };
  auto const save = [&] {
    all_of_it.stop();
    measure();
    at.totals = net.totals();
    at.place = place_of(batches);
    file.save(opt, at);
    all_of_it.start();
  };

  while (at.step < steps || at.seen > 0) {
    all_of_it.start();
    while (at.step < steps && at.seen < data.train.count()) {  // false at once if it was stopped after these steps
      auto const batch = batches.next();
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
      at.seen += rows;
      out.progress(++at.step, batches.report().waited);

      bool const stop = stop_asked() && at.step < steps;
      if (file.due(at) || (stop && file.saves())) save();
      if (stop) throw stopped(file.how_to_resume(at));
    }
    all_of_it.stop();
    measure();

    auto const [loss, correct] = net.take_totals();
    auto const [test_loss, test_accuracy] = test(net, data.test, test_batches, mine);
    at.epochs.push_back({.epoch = int(at.epochs.size()) + 1,
                         .steps = at.step,
                         .train_loss = mine.sum(loss) / at.seen,
                         .train_accuracy = 100 * mine.sum(double(correct)) / at.seen,
                         .test_loss = test_loss,
                         .test_accuracy = test_accuracy,
                         .learning_rate = at.learning_rate,
                         .gradient_norm = at.gradient_norm,
                         .skipped = at.skipped,
                         .seconds = std::exchange(at.seconds, 0),
                         .optimizer_seconds = std::exchange(at.optimizer_seconds, 0)});
    at.seen = 0;
    out.end_epoch(at.epochs.back());
  }
  if (o.workers > 0) out.say("data: " + batches.report().bottleneck());
  return {name, at.epochs};
}

/// The same with a new network.
template <class Value, class Device, class Rule, class... Policies>
history train(Device& device, options const& o, std::string const& name, Rule const& rule, dataset const& data,
              console& out, Policies... policies) {
  auto net = initial_network<Value>(device, o, data);
  return train(device, net, o, name, rule, data, out, {}, policies...);
}

/// The same with a storage type known only at run time.
template <class Device>
history train_with_options(options const& o, optimizer_choice const& optimizer, dataset const& data, console& out) {
  Device device;
  auto const run = [&]<class Value>(Value) {
    return train<Value>(device, o, optimizer.label, optimizer.rule, data, out, o.level);
  };
  switch (o.storage) {
    case precision::half: return run(ds::half{});
    case precision::bfloat16: return run(ds::bfloat16{});
    default: return run(0.f);
  }
}

}  // namespace example
