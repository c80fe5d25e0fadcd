// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "../parts/cpu.hpp"
#include "../parts/layer_sizes.hpp"
#include "../parts/network.hpp"
#include "../parts/random.hpp"
#include "../parts/text.hpp"
#include "half_products.hpp"
#include "seeds.hpp"

#include <descent/descent.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

/// A training run at an opt level, on the host.
namespace example::learn {

struct record {
  curve loss, zeros;                  // means over 30 steps; zeros: percentage of the weights' gradients that are 0
  double last_loss = 0, all_zeros = 0;  // means over the last tenth, over all steps
  double accuracy = 0, loss_scale = 1, bytes_owned = 0;
};

template <class Level> using device_of = std::conditional_t<std::is_same_v<Level, ds::amp::O0>, cpu, half_products>;

template <class Level, class... Policies>
record train_once(std::string const& name, std::uint64_t seed, Policies... policies) {
  using value = typename Level::value;
  using device = device_of<Level>;
  constexpr int steps = 1200, batch = 32;
  dataset const& data = learn::data();
  device d;
  random_source initial{seed, 0};
  network<device, value> net{d, data.train.features, parse_network("relu100"), data.classes, batch, initial};
  // snippet: optimizer
  ds::optimizer opt{net.parameters(), ds::adamw{.lr = 1e-4, .eps = 1e-12}, Level{}, policies...};
  net.loss_weight = 0x1p-20f;
  net.loss_scale = opt.loss_scale_pointer();
  // end

  record r{{name, {}}, {name, {}}};
  auto batches = batches_of(data.train, {batch, ds::last_batch::drop}, reshuffled{seed}, d);
  double loss = 0, zeros = 0, weights = 0;
  for (int t = 1; t <= steps; ++t) {
    net.forward(rows_of(batches.next(), data.train));
    net.backward();
    for (auto const& layer : net.layers()) {
      weights += double(layer.weight_gradient.size());
      for (value const g : layer.weight_gradient) zeros += float(g) == 0;
    }
    opt.step();
    double const now = net.take_totals().loss / batch;
    loss += now;
    if (t > 9 * steps / 10) r.last_loss += now * 10 / steps;
    if (t % 30 > 0) continue;
    r.loss.points.push_back({t - 15., loss / 30}), r.zeros.points.push_back({t - 15., 100 * zeros / weights});
    r.all_zeros += 100 * zeros / weights * 30 / steps;
    loss = zeros = weights = 0;
  }
  auto test = batches_of(data.test, {.size = batch}, ds::sequential{}, d);
  for (auto const& part : test.epoch()) net.forward(rows_of(part, data.test));
  r.accuracy = 100. * double(net.take_totals().correct) / data.test.count();
  r.loss_scale = opt.loss_scale();
  r.bytes_owned = 2 * sizeof(value) + opt.memory().bytes_per_parameter();
  return r;
}

/// The mean of e's seeds.
template <class Level, class... Policies>
record train(std::string const& name, experiment const& e, Policies... policies) {
  using value = typename Level::value;
  std::vector<curve> losses, zeros;
  record mean;
  for (auto const& one :
       with_seeds(e, [&](std::uint64_t seed) { return train_once<Level>(name, seed, policies...); })) {
    losses.push_back(one.loss), zeros.push_back(one.zeros);
    mean.last_loss += one.last_loss / double(e.seeds), mean.all_zeros += one.all_zeros / double(e.seeds);
    mean.accuracy += one.accuracy / double(e.seeds);
    mean.loss_scale = one.loss_scale, mean.bytes_owned = one.bytes_owned;
  }
  mean.loss = mean_of(losses), mean.zeros = mean_of(zeros);
  std::printf("%-16s %-6s %-6s %-9s %6.0f %6d %9.5f %8.1f %% %7.1f %%\n", name.c_str(), ds::type_name<value>(),
              std::is_same_v<device_of<Level>, cpu> ? "float" : "half", short_number(mean.loss_scale).c_str(),
              mean.bytes_owned, int(ds::bytes_per_parameter<value, value, ds::adamw, Level, Policies...>()),
              mean.last_loss, mean.accuracy, mean.all_zeros);
  return mean;
}

}  // namespace example::learn
