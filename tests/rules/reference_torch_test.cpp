// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/adadelta.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rprop.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

using namespace test::reference;
namespace ds = descent;

namespace test::reference {
template <> inline constexpr char const* name_of<ds::adagrad> = "adagrad";
template <> inline constexpr char const* name_of<ds::adadelta> = "adadelta";
template <> inline constexpr char const* name_of<ds::adamax> = "adamax";
template <> inline constexpr char const* name_of<ds::nadam> = "nadam";
template <> inline constexpr char const* name_of<ds::radam> = "radam";
template <> inline constexpr char const* name_of<ds::asgd> = "asgd";
template <> inline constexpr char const* name_of<ds::rprop> = "rprop";
template <> inline constexpr char const* name_of<ds::amsgrad> = "amsgrad";
template <> inline constexpr char const* name_of<ds::heavy_ball> = "heavy_ball";
}  // namespace test::reference

TEST_CASE("nine rules follow PyTorch, and adagrad with eps inside optax, for 100 steps") {
  follow_all<ds::adagrad, ds::adadelta, ds::adamax, ds::nadam, ds::radam, ds::asgd, ds::rprop, ds::amsgrad,
             ds::heavy_ball>("values_torch.txt");
}

TEST_CASE("asgd's mean follows PyTorch's") {
  int cases = 0;
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values_torch_means.txt")) {
    INFO(g.line);
    ++cases;
    std::vector<double> value[3], grad[3];
    ds::parameters<double> list;
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t i = 0; i < sizes[k]; ++i) value[k].push_back(start(k, i));
      grad[k].resize(sizes[k]);
      list.add(std::to_string(k), value[k].data(), grad[k].data(), sizes[k]);
    }
    ds::optimizer opt{list, configured<ds::asgd>(g)};
    std::size_t compared = 0;
    for (int t = 1; t <= g.steps.back().step; ++t) {
      for (std::size_t k = 0; k < 3; ++k)
        for (std::size_t i = 0; i < sizes[k]; ++i) grad[k][i] = gradient(k, i, std::size_t(t));
      opt.step();
      for (recorded const& r : g.steps) {
        if (r.step != t) continue;
        auto const ax = opt.state(std::to_string(r.tensor), "ax");
        for (std::size_t i = 0; i < r.values.size(); ++i, ++compared)
          CHECK(std::abs(ax[i] - r.values[i]) <= 1e-13);
      }
    }
    CHECK(compared == g.steps.size() / 3 * 18);
  }
  CHECK(cases == 2);
}

TEST_CASE("heavy_ball with correction follows PyTorch's SGD and scheduler, whose lr is outside; without, it does not") {
  int cases = 0;
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values_torch.txt")) {
    if (!g.options.contains("schedule")) continue;
    INFO(g.line);
    REQUIRE(g.options.at("schedule") == "warmup5_linear50");
    ++cases;
    auto rule = configured<ds::heavy_ball>(g);
    REQUIRE(rule.correction);
    auto const rate =
        ds::learning_rate(ds::warmup<ds::linear>{5, {.from = rule.lr, .to = 0.1 * rule.lr, .steps = 50}});
    CHECK(follow<double>(g, rule, rate).values <= 1e-13);
    CHECK(follow<double>(g, rule, rate).way <= 1e-9);
    CHECK(follow<float>(g, rule, rate).values <= 1e-5);
    rule.correction = false;
    CHECK(follow<double>(g, rule, rate).values >= 1e-2);
  }
  CHECK(cases == 2);
}
