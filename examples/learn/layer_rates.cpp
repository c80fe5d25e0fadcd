// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The rate of each layer with SGD, LARS and LAMB: docs/learn/large_batches.md.
#include "experiment.hpp"
#include "run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

double norm(std::vector<float> const& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

/// The rate at which SGD would go as far with a layer's weights: |change of w| / |g|.
struct measured {
  struct before {
    std::vector<float> w;
    double norm_of_g = 0;
  };
  std::vector<before> last{};
  std::vector<curve> rates{};
  std::vector<double> shares{};  // |change of w| / |w|

  void operator()(auto& net, auto&, image_rows const& batch, int t) {
    last.resize(net.layers().size()), rates.resize(last.size());
    for (std::size_t k = 0; k < last.size(); ++k) {
      auto change = net.layers()[k].weight;
      // snippet: measured
      if (t > 1) {
        for (std::size_t i = 0; i < change.size(); ++i) change[i] -= last[k].w[i];
        rates[k].points.push_back({double(t) - 1, norm(change) / last[k].norm_of_g});
        shares.push_back(norm(change) / norm(last[k].w));
      }
      // end
      last[k].w = net.layers()[k].weight;
    }
    net.forward(batch);
    net.backward();
    for (std::size_t k = 0; k < last.size(); ++k) last[k].norm_of_g = norm(net.layers()[k].weight_gradient);
  }
};

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv};
    std::vector<panel> panels;
    std::puts("rate                  layer 1           layer 2           layer 3           layer 4     |change| / |w|");
    auto const run = [&](char const* name, auto const& rule) {
      measured m;
      learn::train_with({.steps = 101, .batch = 512, .network = "relu100,relu50,relu30", .seed = e.seed}, m, rule);
      std::printf("%-14s", name);
      for (std::size_t k = 0; k < m.rates.size(); ++k) {
        m.rates[k].name = "layer " + std::to_string(k + 1);
        std::printf("  %6.3f to %-6.3f", m.rates[k].points.front().y, m.rates[k].points.back().y);
      }
      auto const [low, high] = std::ranges::minmax(m.shares);
      std::printf("  %.3f to %.3f\n", low, high);
      panels.push_back({name, "update", axis::logarithmic, m.rates});
      return m;
    };
    run("SGD, lr 0.2", ds::sgd{.lr = 0.2});
    auto const lars = run("LARS, lr 10", ds::lars{.lr = 10, .momentum = 0});
    auto const lamb = run("LAMB, lr 0.02", ds::lamb{.lr = 0.02});
    for (double share : lars.shares) e.claim(close(share, 10 * 1e-3, 0.01), "LARS changes each layer by lr trust |w|");
    for (double share : lamb.shares) e.claim(close(share, 0.02, 0.01), "LAMB by lr |w|");
    auto const late = [](curve const& c) { return std::max({c.points[99].y, c.points[98].y, c.points[97].y}); };
    e.claim(late(lars.rates[0]) > 2 * late(lars.rates[3]), "the first layer has the largest rate");
    e.claim(late(lamb.rates[0]) > 2 * lamb.rates[0].points[0].y, "LAMB's rates rise as gradients shrink");
    e.write("The rate of each layer: |change of w| / |g|", {panels[1], panels[2]});
  });
}
