// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/rules/adadelta.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rprop.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <string>

using namespace test::reference;
namespace ds = descent;

TEST_CASE("nine rules follow PyTorch, and adagrad with eps inside optax, for 100 steps") {
  follow_all("values_torch.txt", 0, named<ds::adagrad>{"adagrad"}, named<ds::adadelta>{"adadelta"},
             named<ds::adamax>{"adamax"}, named<ds::nadam>{"nadam"}, named<ds::radam>{"radam"}, named<ds::asgd>{"asgd"},
             named<ds::rprop>{"rprop"}, named<ds::amsgrad>{"amsgrad"}, named<ds::heavy_ball>{"heavy_ball"});
}

TEST_CASE("asgd's mean follows PyTorch's") {
  each_case("values_torch_means.txt", 2, every, [](golden const& g) {
    tensors<double> p;
    ds::optimizer opt{p.list(), configured<ds::asgd>(g)};
    auto const step = [&](int t) { p.backward(t), opt.step(); };
    auto const mean = [&](std::size_t k, std::size_t i) { return opt.state(std::to_string(k), "ax")[i]; };
    difference const d = compare(g, step, mean);
    CHECK(d.compared == 7 * 18);
    CHECK(d.values <= 1e-13);
  });
}

TEST_CASE("heavy_ball with correction follows PyTorch's SGD and scheduler, whose lr is outside; without, it does not") {
  each_case("values_torch.txt", 2, has_schedule, [](golden const& g) {
    REQUIRE(g.options.at("schedule") == "warmup5_linear50");
    auto rule = configured<ds::heavy_ball>(g);
    REQUIRE(rule.correction);
    auto const rate = ds::learning_rate(ds::warmup<ds::linear>{5, {.from = rule.lr, .to = 0.1 * rule.lr, .steps = 50}});
    check_follows({}, g, rule, rate);
    rule.correction = false;
    CHECK(follow(g, rule, rate).values >= 1e-2);
  });
}
