// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#define DESCENT_RULE_FAMILY core
#include "support/storage_product.hpp"
#include "support/trial.hpp"

using namespace test;
namespace ds = descent;

TEST_CASE("sgd: follows itself in double in every storage type") { check_storage<ds::sgd>(); }

TEST_CASE("sgd: moves by lr against the gradient") {
  trial t(ds::sgd{.lr = 0.25}, {1, 2});
  CHECK(t.step({1, -2}) == std::vector{0.75, 2.5});
  CHECK(t.step({1, 0}) == std::vector{0.5, 2.5});
}

TEST_CASE("sgd: the first step is not dampened, the later ones are") {
  trial t(ds::sgd{.lr = 1, .momentum = 0.5, .dampening = 0.75}, {8});
  CHECK(t.step({1}) == std::vector{7.0});    // b = 1
  CHECK(t.step({1}) == std::vector{6.25});   // b = 0.5 + 0.25
  CHECK(t.step({0}) == std::vector{5.875});  // b = 0.375
}

TEST_CASE("sgd: without momentum there is no dampening and no buffer") {
  trial t(ds::sgd{.lr = 1, .dampening = 0.75}, {8});
  t.step({1});
  CHECK(t.step({1}) == std::vector{6.0});
  CHECK(t.state(0).empty());
}

TEST_CASE("sgd: Nesterov looks ahead by one momentum") {
  trial t(ds::sgd{.lr = 1, .momentum = 0.5, .nesterov = true}, {8});
  CHECK(t.step({1}) == std::vector{6.5});   // b = 1,   1 + 0.5
  CHECK(t.step({1}) == std::vector{4.75});  // b = 1.5, 1 + 0.75
}

TEST_CASE("sgd: decay is part of the gradient and enters the buffer") {
  trial t(ds::sgd{.lr = 1, .momentum = 0.5, .weight_decay = 0.25}, {8});
  CHECK(t.step({0}) == std::vector{6.0});  // b = 2
  CHECK(t.step({0}) == std::vector{3.5});  // b = 1 + 1.5
}
