// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// An embedding of which a step sees few rows: docs/learn/momentum_to_adam.md.
#include "seeds.hpp"
#include "words.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

namespace ds = descent;
using namespace example;

constexpr int steps = 600, batch = 32;

/// Percentage of right answers for words that a run has seen at least 30 times, and for those seen one to three times.
struct answers { double common, rare; };

answers trained(std::uint64_t seed, auto const& rule, auto const&... policies) {
  learn::words const words{seed};
  learn::embedded_classes net{seed};
  ds::optimizer opt{net.parameters(), rule, ds::zero_grad{}, policies...};
  random_source random{seed, 1};
  std::vector<std::int32_t> seen(batch);
  std::vector<int> times(words.count);
  for (int t = 0; t < steps; ++t) {
    for (auto& word : seen) {
      auto const k = words.draw(random);
      bool const wrong = random.uniform(0, 1) < 0.3;  // three of ten labels are drawn at random
      net.backward(k, wrong ? random.below(words.classes) : words.label[k], batch);
      word = std::int32_t(k), ++times[k];
    }
    // snippet: rows
    if constexpr (sizeof...(policies) > 0) opt.select_rows("embedding", seen.data(), batch);
    opt.step();
    // end
  }
  auto const right = [&](int least, int most) {
    double sum = 0, all = 0;
    for (std::size_t k = 0; k < words.count; ++k)
      if (times[k] >= least && times[k] <= most) ++all, sum += net.answer(k) == words.label[k];
    return 100 * sum / all;
  };
  return {right(30, batch * steps), right(1, 3)};
}

int main(int argc, char** argv) {
  return exit_code([&] {
    learn::experiment const e{argc, argv, {.what = "Trains an embedding with rare and frequent words.", .seeds = "8"}};
    panel shown{"words seen one to three times, right answers in %", "lr", axis::linear, {}, x_axis::decades};
    for (auto const* name : {"SGD", "Adagrad", "Adam", "Adam, selected rows"}) shown.curves.push_back({name, {}});
    std::puts("rule                 lr             common words              rare words");
    double best[4] = {};  // of the rare words
    auto const show = [&](std::size_t i, std::initializer_list<double> rates, auto rule, auto const&... policies) {
      for (double lr : rates) {
        rule.lr = lr;
        std::vector<double> common, rare;
        for (auto const& one : learn::with_seeds(e, [&](std::uint64_t s) { return trained(s, rule, policies...); }))
          common.push_back(one.common), rare.push_back(one.rare);
        auto const a = learn::spread_of(common), b = learn::spread_of(rare);
        std::printf("%-20s %-5g %7.1f (%4.1f to %5.1f)  %6.1f (%4.1f to %5.1f)\n", shown.curves[i].name.c_str(), lr,
                    a.mean, a.low, a.high, b.mean, b.low, b.high);
        learn::add(shown.curves[i], lr, b);
        best[i] = std::max(best[i], b.mean);
      }
    };
    show(0, {0.3, 1, 3, 10}, ds::sgd{});
    show(1, {0.03, 0.1, 0.3, 1}, ds::adagrad{});
    show(2, {0.001, 0.01, 0.1}, ds::adam{});
    show(3, {0.001, 0.01, 0.1}, ds::adam{}, ds::masked_rows<ds::row_step::own>{});
    e.claim(*std::ranges::min_element(best) > 65, "each rule has a rate with which it learns rare words");
    e.write("An embedding with rare words", {shown});
  });
}
