// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/rules/acprop.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/dadapt_adamw.hpp>
#include <descent/rules/dowg.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/schedule_free_sgd.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <cstddef>
#include <string>

using namespace test::reference;
namespace ds = descent;

namespace {

constexpr named<ds::schedule_free_sgd> free_sgd{"schedule_free_sgd"};
constexpr named<ds::schedule_free_adamw> free_adamw{"schedule_free_adamw"};
constexpr named<ds::dowg> dowg{"dowg"};
constexpr named<ds::prodigy> prodigy{"prodigy"};
constexpr named<ds::dadapt_adamw> dadapt_adamw{"dadapt_adamw"};

}  // namespace

TEST_CASE("rules without a rate or a schedule to tune follow optax and pytorch_optimizer for 100 steps") {
  follow_all("values_free.txt", 3, free_sgd, free_adamw, dowg, prodigy, dadapt_adamw, named<ds::madgrad>{"madgrad"},
             named<ds::cocob>{"cocob"}, named<ds::acprop>{"acprop"});
}

TEST_CASE("schedule-free rules under a warm-up follow pytorch_optimizer, which warms up by itself") {
  each_case("values_free.txt", 4, has_schedule, [](golden const& g) {
    REQUIRE(g.options.at("schedule") == "warmup10");
    auto const follows = [&](auto const& rule, tolerance const& allowed) {
      auto const rate = ds::learning_rate(ds::warmup<ds::constant>{.steps = 10, .then = {rule.lr}});
      check_follows(allowed, g, rule, rate);
    };
    CHECK(with_rule(g, follows, free_sgd, free_adamw));
  });
}

TEST_CASE("what schedule-free rules average is what optax evaluates") {
  each_case("values_free_averages.txt", 4, every, [](golden const& g) {
    auto const follows = [&]<class Rule>(Rule const& rule, tolerance const&) {
      tensors<double> y;
      ds::optimizer opt{y.list(), rule};
      auto const x = [&](std::size_t k, std::size_t i) {
        typename Rule::template state<double> s{};
        s.z = opt.state(std::to_string(k), 0)[i];
        return rule.averaged(y(k, i), s);
      };
      difference const d = compare(g, [&](int t) { y.backward(t), opt.step(); }, x);
      CHECK(d.compared == 7 * 18);
      CHECK(d.values <= 1e-13);
    };
    CHECK(with_rule(g, follows, free_sgd, free_adamw));
  });
}

TEST_CASE("rules that estimate a distance follow optax and pytorch_optimizer where it grows") {
  each_case("values_free_quadratic.txt", 11, every, [](golden const& g) {
    auto const step = [](tensors<double>& p, auto& opt, int) {
      p.backward_by([&](std::size_t k, std::size_t i) { return (p(k, i) - 2) * 2 / double(1 << k); });
      opt.step();
    };
    auto const follows = [&](auto const& rule, tolerance const&) {
      difference const d = follow_by(step, g, rule);
      CHECK(d.compared == 7 * 18);
      // d grows up to a millionfold, and rounding with it: the peers differ by up to 8e-12.
      CHECK(d.values <= 1e-10);
    };
    CHECK(with_rule(g, follows, dowg, prodigy, dadapt_adamw));
  });
}
