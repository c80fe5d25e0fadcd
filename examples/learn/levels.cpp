// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The opt levels O0 to O3 side by side, on the host: docs/learn/mixed_precision.md.
#include "../parts/cpu.hpp"
#include "../parts/layer_sizes.hpp"
#include "../parts/network.hpp"
#include "../parts/random.hpp"
#include "../parts/text.hpp"
#include "experiment.hpp"
#include "half_products.hpp"

#include <descent/descent.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

namespace ds = descent;
using namespace example;
using learn::half_products;

struct record {
  curve loss, zeros;                  // means over 30 steps; zeros: percentage of the weights' gradients that are 0
  double last_loss = 0, all_zeros = 0;  // means over the last tenth, over all steps
};

template <class Level, class... Policies>
record train(std::string const& name, std::uint64_t seed, Policies... policies) {
  using value = typename Level::value;
  using device = std::conditional_t<std::is_same_v<Level, ds::amp::O0>, cpu, half_products>;
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
  std::printf("%-16s %-6s %-6s %-9s %6.0f %6d %9.5f %8.1f %% %7.1f %%\n", name.c_str(), ds::type_name<value>(),
              std::is_same_v<device, cpu> ? "float" : "half", short_number(opt.loss_scale()).c_str(),
              2 * sizeof(value) + opt.memory().bytes_per_parameter(),
              int(ds::bytes_per_parameter<value, value, ds::adamw, Level, Policies...>()), r.last_loss,
              100. * double(net.take_totals().correct) / data.test.count(), r.all_zeros);
  return r;
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv};
    std::puts("                 values, in     scale      bytes  bytes             test  gradients\n"
              "                 grads  products         owned  moved     loss  accuracy       at 0");
    auto const o0 = train<ds::amp::O0>("O0", e.seed), o1 = train<ds::amp::O1>("O1", e.seed);
    auto const o2 = train<ds::amp::O2>("O2", e.seed), o3 = train<ds::amp::O3>("O3", e.seed);
    auto const scaled = train<ds::amp::O3>("O3 + loss scale", e.seed, ds::dynamic_loss_scale{});
    auto const master = train<ds::amp::O3>("O3 + master", e.seed, ds::master<float>{});
    e.claim(close(o1.last_loss, o0.last_loss, 0.02) && close(o2.last_loss, o0.last_loss, 0.02),
            "O1 and O2 learn as O0");
    e.claim(std::max({o1.all_zeros, o2.all_zeros, scaled.all_zeros}) < o0.all_zeros + 3,
            "a loss scale keeps gradients");
    e.claim(std::min(o3.all_zeros, master.all_zeros) > 90, "without it, half loses nearly all");
    e.claim(scaled.last_loss > 1.2 * o0.last_loss, "with it alone, updates are lost");
    e.claim(master.last_loss > 1.5 * o0.last_loss, "a master alone saves no gradients");
    e.claim(o3.last_loss > std::max(scaled.last_loss, master.last_loss), "O3 loses both");
    panel loss{"loss, without its factor", "step", axis::logarithmic, {}};
    panel zeros{"gradients that are 0, %", "step", axis::linear, {}};
    for (auto const& r : {o0, o1, o2, o3, scaled, master})
      loss.curves.push_back(r.loss), zeros.curves.push_back(r.zeros);
    e.write("A hidden layer on handwritten digits, loss times 2⁻²⁰", {loss, zeros});
  });
}
