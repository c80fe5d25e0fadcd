// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <descent/rules/adabelief.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/ademamix.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/optimistic.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>
#include <descent/rules/yogi.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>

using namespace test::reference;
namespace ds = descent;

TEST_CASE("optax's rules follow optax, and Adan with the paper's weight pytorch_optimizer, for 100 steps") {
  follow_all("values_optax.txt", 0, named<ds::signsgd>{"signsgd"}, named<ds::signum>{"signum"}, named<ds::yogi>{"yogi"},
             named<ds::adabelief>{"adabelief"}, named<ds::adan>{"adan"}, named<ds::adopt>{"adopt"},
             named<ds::ademamix>{"ademamix"}, named<ds::optimistic>{"optimistic"},
             named<ds::optimistic_adam>{"optimistic_adam"}, named<ds::fromage>{"fromage"},
             named<ds::novograd>{"novograd"});
}

TEST_CASE("ademamix whose alpha and beta3 follow schedules follows optax, whose alpha and b3 do") {
  each_case("values_optax.txt", 1, has_schedule, [](golden const& g) {
    REQUIRE(g.options.at("schedule") == "grow");
    auto const rule = configured<ds::ademamix>(g);
    auto const alpha = ds::vary<&ds::ademamix::alpha>(ds::linear{.from = 0, .to = rule.alpha, .steps = 50});
    auto const beta3 = ds::vary<&ds::ademamix::beta3>(ds::linear{.from = 0.9, .to = rule.beta3, .steps = 50});
    check_follows({.way = 1e-10}, g, rule, alpha, beta3);
  });
}
