// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// The rate of each layer with SGD, LARS and LAMB: docs/learn/large_batches.md.
#include "experiment.hpp"
#include "seeds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

double norm(std::vector<float> const& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

/// The rate at which SGD would go as far with a layer's weights: |change of w| / |g|.
struct measured {
  std::vector<std::vector<float>> w{};  // before the update
  std::vector<double> norm_of_g{};
  std::vector<std::vector<curve>> rates{};  // of each layer, for each seed
  std::vector<double> shares{};             // |change of w| / |w|

  void operator()(auto& net, auto&, image_rows const& batch, int t) {
    w.resize(net.layers().size()), norm_of_g.resize(w.size()), rates.resize(w.size());
    for (std::size_t k = 0; k < w.size(); ++k) {
      if (t == 1) rates[k].push_back({"layer " + std::to_string(k + 1), {}});
      auto change = net.layers()[k].weight;
      // snippet: measured
      if (t > 1) {
        for (std::size_t i = 0; i < change.size(); ++i) change[i] -= w[k][i];
        rates[k].back().points.push_back({double(t) - 1, norm(change) / norm_of_g[k]});
        shares.push_back(norm(change) / norm(w[k]));
      }
      // end
      w[k] = net.layers()[k].weight;
    }
    net.forward(batch);
    net.backward();
    for (std::size_t k = 0; k < w.size(); ++k) norm_of_g[k] = norm(net.layers()[k].weight_gradient);
  }
};

struct means {
  std::vector<curve> rates{};
  std::vector<double> shares{};
};

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Shows each layer's rate with SGD, LARS and LAMB.", .seeds = "3"}};
    std::vector<panel> panels;
    std::puts("rate                  layer 1           layer 2           layer 3           layer 4     |change| / |w|");
    auto const run = [&](char const* name, auto const& rule) {
      measured m;
      for (std::uint64_t seed = e.seed; seed < e.seed + e.seeds; ++seed)
        learn::train_with({.steps = 101, .batch = 512, .network = "relu100,relu50,relu30", .seed = seed}, m, rule);
      std::printf("%-14s", name);
      means all{{}, m.shares};
      for (auto const& runs : m.rates) {
        auto const& mean = all.rates.emplace_back(learn::mean_of(runs)).points;
        std::printf("  %6.3f to %-6.3f", mean.front().y, mean.back().y);
      }
      auto const [low, high] = std::ranges::minmax(all.shares);
      std::printf("  %.3f to %.3f\n", low, high);
      panels.push_back({std::string{"rate of each layer, "} + name, "update", axis::logarithmic, all.rates});
      return all;
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
