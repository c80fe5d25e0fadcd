// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/cpu.hpp"
#include "../parts/layer_sizes.hpp"
#include "../parts/network.hpp"
#include "../parts/random.hpp"
#include "experiment.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

/// The run that programs of the course share: a small network that reads digits.
namespace example::learn {

struct settings {
  int steps = 300, batch = 32;
  std::string network = "deep";
  std::uint64_t seed = 1;
  double goal = 100;   // percentage of the test images: the run ends when it is reached
  int look_every = 0;  // steps between two looks at the test images, 0: only at the end
  double loss_goal = 0;  // the run also ends when the mean loss of as many batches as an epoch has is below it
  int images = 1438;     // of the training images, drawn by the seed if these are not all
  dataset const* of = nullptr;  // other images than data(), all of them
};

/// What the test images say after a step: mean loss and percentage.
struct look {
  int step;
  double loss, accuracy;
};

struct result {
  std::vector<double> loss{};  // of each batch
  std::vector<look> looks{};
  double accuracy = 0;  // percentage of the test images, at the end
  int steps = 0;        // until the goal, or all
  ds::step_report report{};
  std::vector<double> values{};  // of all parameters, at the end
};

/// So many of the images, drawn by the seed.
inline labelled_images drawn(labelled_images const& all, int count, std::uint64_t seed) {
  auto order = in_order(std::size_t(all.count()));
  random_source{seed, 2}.shuffle(order);
  labelled_images some{.features = all.features, .brightest = all.brightest};
  for (int i = 0; i < count; ++i) {
    auto const first = all.pixels.begin() + std::ptrdiff_t{order[std::size_t(i)]} * all.features;
    some.pixels.insert(some.pixels.end(), first, first + all.features);
    some.labels.push_back(all.labels[std::size_t(order[std::size_t(i)])]);
  }
  return some;
}

/// Mean loss and percentage of right answers.
template <class Network> look look_at(Network& net, labelled_images const& images, int batch, int step = 0) {
  image_rows const all = rows_of(images);
  net.take_totals();
  for (int first = 0; first < all.count; first += batch)
    net.forward(all.part({first, std::min(batch, all.count - first)}));
  auto const sums = net.take_totals();
  return {step, sums.loss / all.count, 100. * double(sums.correct) / all.count};
}

/// The gradient of a batch's mean loss: forward and backward.
struct whole_batch {
  void operator()(auto& net, auto&, image_rows const& batch, int) const {
    net.forward(batch);
    net.backward();
  }
};

/// Shuffled again in each epoch, unless a batch has all images.
struct run_order {
  reshuffled by;
  bool whole;

  ds::listed epoch(std::int64_t images, std::int64_t epoch) const { return by.epoch(images, whole ? 0 : epoch); }
};

/// Trains with values stored as Value; `recipe` is a rule and policies. `gradient(net, opt, images, t)` leaves the
/// gradients for step t in the network.
template <class Value = float>
result train_with(settings const& s, auto&& gradient, auto const&... recipe) {
  dataset const& all = s.of ? *s.of : data();
  auto const images = !s.of && s.images < all.train.count() ? drawn(all.train, s.images, s.seed) : all.train;
  cpu device;
  random_source initial{s.seed, 0};
  network<cpu, Value> net{device, images.features, parse_network(s.network), all.classes, s.batch, initial};
  ds::optimizer opt{net.parameters(), recipe...};
  net.loss_scale = opt.loss_scale_pointer();
  auto batches =
      batches_of(images, {s.batch, ds::last_batch::drop}, run_order{{s.seed}, s.batch == images.count()}, device);
  result r;
  auto const test = [&] {
    r.looks.push_back(look_at(net, all.test, s.batch, r.steps));
    r.accuracy = r.looks.back().accuracy;
  };
  double recent = 1e9;  // mean loss of the last epoch's batches
  auto const epoch = std::size_t(images.count() / s.batch);
  for (int t = 1; t <= s.steps && r.accuracy < s.goal && recent >= s.loss_goal; ++t) {
    gradient(net, opt, rows_of(batches.next(), images), t);
    opt.step();
    r.loss.push_back(net.take_totals().loss / s.batch);
    r.steps = t;
    if (r.loss.size() >= epoch)
      recent = std::accumulate(r.loss.end() - std::ptrdiff_t(epoch), r.loss.end(), 0.) / double(epoch);
    if (s.look_every > 0 && t % s.look_every == 0) test();
  }
  if (s.look_every == 0) test();
  r.report = opt.report();
  auto const values = net.values();
  r.values.assign(values.begin(), values.end());
  return r;
}

template <class Value = float> result train(settings const& s, auto const&... recipe) {
  return train_with<Value>(s, whole_batch{}, recipe...);
}

}  // namespace example::learn
