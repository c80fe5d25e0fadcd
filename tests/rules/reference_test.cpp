// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

using namespace test::reference;
namespace ds = descent;

TEST_CASE("the first eight rules follow PyTorch and optax for 100 steps") {
  follow_all("values.txt", 0, named<ds::sgd>{"sgd"}, named<ds::adam>{"adam"}, named<ds::adamw>{"adamw"},
             named<ds::rmsprop>{"rmsprop"}, named<ds::lion>{"lion"}, named<ds::lamb>{"lamb"}, named<ds::lars>{"lars"},
             named<ds::dog>{"dog"});
}

TEST_CASE("adamw under warm-up and cosine follows PyTorch's scheduler") {
  each_case("values.txt", 1, has_schedule, [](golden const& g) {
    REQUIRE(g.options.at("schedule") == "warmup5_cosine10");
    auto const rule = configured<ds::adamw>(g);
    auto const rate = ds::learning_rate(ds::warmup<ds::cosine>{5, {.peak = rule.lr, .steps = 10}});
    check_follows({.way = 1e-10}, g, rule, rate);
  });
}
