// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Where noise on the gradient helps, and where it does not: docs/learn/batch_noise.md.
#include "seeds.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

/// The start of a run: before its first gradient, all weights get one value, unless it is NaN.
struct from_equal_weights {
  float weight;

  void operator()(auto& net, auto&, image_rows const& batch, int t) const {
    if (t == 1 && weight == weight)
      for (auto& layer : net.layers()) std::ranges::fill(layer.weight, weight);
    net.forward(batch);
    net.backward();
  }
};

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Adds noise to gradients, from three starts.", .seeds = "8"}};
    panel shown{"test accuracy in %, mean and range of the seeds", "updates", axis::nines, {}};
    std::puts("start           gradient        test accuracy, mean (range)");
    double mean[3][2];
    // snippet: noise
    ds::gradient_noise const noise{.eta = 0.01, .gamma = 0.55, .seed = 1};
    // end
    char const* const starts[] = {"drawn", "all 0", "all 0.05"};
    for (int start : {0, 1, 2})
      for (bool noisy : {false, true}) {
        auto const name = std::string{starts[start]} + (noisy ? ", noise" : "");
        std::vector<double> last;
        auto const all = learn::with_seeds(e, [&](std::uint64_t seed) {
          learn::settings const s{.steps = 900, .network = "relu50", .seed = seed, .look_every = 100};
          from_equal_weights const from{start == 0 ? std::nanf("") : start == 1 ? 0.f : 0.05f};
          ds::sgd const rule{.lr = 0.1};
          auto const r = noisy ? learn::train_with(s, from, rule, noise) : learn::train_with(s, from, rule);
          last.push_back(r.accuracy);
          return learn::accuracy_of(name, r.looks);
        });
        auto const [low, average, high] = learn::spread_of(last);
        std::printf("%-15s %-15s %4.1f (%4.1f to %4.1f)\n", starts[start], noisy ? "with noise" : "as it is", average,
                    low, high);
        shown.curves.push_back(learn::mean_of(all));
        mean[start][noisy] = average;
      }
    e.claim(mean[1][0] < 20 && mean[1][1] > 90, "from weights of 0 only noise gets away");
    e.claim(mean[2][0] < mean[2][1] - 10, "equal units stay equal without noise");
    e.claim(mean[0][1] < mean[0][0] + 1, "from drawn weights noise gains nothing");
    e.write("Noise on the gradient, handwritten digits", {shown});
  });
}
