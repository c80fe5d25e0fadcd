// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/timeline.hpp"
#include "experiment.hpp"
#include "stage.hpp"

#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

/// A network whose layers are on two devices, here threads, and what each did when.
namespace example::learn {

namespace ds = descent;

constexpr std::size_t batch = 128, updates = 4;
constexpr double limit = 1;  // of the norm
constexpr ds::sgd rule{.lr = 0.01, .momentum = 0.9};

enum class clip { none, own, all };

struct device {
  stage part;
  bool first;
  std::vector<work> done = {};

  /// The work on micro-batch m is done. It takes at least `least` milliseconds, as on a slower device.
  void add(char const* kind, std::size_t m, double from, double least) {
    sleep_until(from + least);
    done.push_back({first ? "device 1" : "device 2", kind, std::to_string(m + 1), from, milliseconds_now()});
  }
};

/// Trains the layers of a device. A micro-batch may go forward if at most `ahead` others still have to go backward.
/// `pace`: milliseconds for the forward pass of a batch.
void train(device& d, std::size_t micro_batches, std::size_t ahead, double pace, channel& right, channel& left,
           auto const&... policies) {
  ds::optimizer opt{d.part.parameters(d.first ? 0 : 2), rule, ds::accumulate{1}, ds::zero_grad{}, policies...};
  std::size_t const size = batch / micro_batches;
  std::vector<rows> outputs(micro_batches);
  for (std::size_t t = 0; t < updates; ++t) {
    auto const forward = [&](std::size_t m) {
      rows const x = d.first ? images(t * batch + m * size, size) : right.receive();
      double const from = milliseconds_now();
      outputs[m] = d.part.forward(m, x);
      d.add("forward", m, from, pace / double(micro_batches));
      if (d.first) right.send(outputs[m]);
    };
    auto const backward = [&](std::size_t m) {
      rows const dy = d.first ? left.receive() : loss_gradient(outputs[m], t * batch + m * size);
      double const from = milliseconds_now();
      rows const dx = d.part.backward(m, dy);
      d.add("backward", m, from, 2 * pace / double(micro_batches));
      if (!d.first) left.send(dx);
    };
    // snippet: schedule
    for (std::size_t f = 0, b = 0; b < micro_batches;)
      if (f < micro_batches && f <= b + ahead) forward(f++);
      else backward(b++);
    // end
    opt.step(batch);
  }
}

struct result {
  timeline fastest = {};                 // update
  std::array<std::size_t, 2> kept = {};  // images whose activations a device held at a time
  bool together = false;                 // whether the devices ever worked at the same time
  std::vector<float> w = {};
};

inline result on_two_devices(std::string const& title, std::size_t micro_batches, std::array<std::size_t, 2> ahead,
                             clip how = clip::none) {
  auto const l = digits_layers();
  std::array<device, 2> d{device{{{l[0], l[1]}}, true}, device{{{l[2], l[3]}}, false}};
  channel right, left;
  ds::comm::threads world{2};
  auto const run = [&](int k) {
    auto comm = world.rank(k);
    auto const with = [&](double pace, auto const&... policies) {
      train(d[std::size_t(k)], micro_batches, ahead[std::size_t(k)], pace, right, left, policies...);
    };
    // snippet: norm
    if (how == clip::none) with(40);
    else if (how == clip::own) with(0, ds::clip_norm{limit});
    else with(0, ds::clip_norm{limit}, ds::model_parallel{comm});
    // end
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  result r{.fastest = {title, {}}};
  for (auto const& a : d[0].done)
    for (auto const& b : d[1].done) r.together |= a.from < b.to && b.from < a.to;
  for (std::size_t k : {0, 1}) {
    r.kept[k] = d[k].part.most_kept * batch / micro_batches;
    for (float w : d[k].part.values()) r.w.push_back(w);
  }
  for (std::size_t t = 0; t < updates; ++t) {
    std::vector<work> update;
    for (auto const& one : d)
      for (std::size_t i = 0; i < 2 * micro_batches; ++i) update.push_back(one.done[2 * micro_batches * t + i]);
    if (t == 0 || length(update) < length(r.fastest.pieces)) r.fastest.pieces = update;
  }
  return r;
}

std::vector<float> on_one_device(auto const&... policies) {
  stage all{digits_layers()};
  ds::optimizer opt{all.parameters(), rule, ds::accumulate{1}, ds::zero_grad{}, policies...};
  for (std::size_t t = 0; t < updates; ++t) {
    all.backward(0, loss_gradient(all.forward(0, images(t * batch, batch)), t * batch));
    opt.step(batch);
  }
  return all.values();
}

inline double largest_difference(std::vector<float> const& a, std::vector<float> const& b) {
  double d = 0;
  for (std::size_t i = 0; i < a.size(); ++i) d = std::max(d, std::fabs(double(a[i]) - double(b[i])));
  return d;
}

}  // namespace example::learn
