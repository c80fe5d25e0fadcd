// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/lion.hpp>

#include <doctest/doctest.h>

#define DESCENT_RULE_FAMILY core
#include "support/storage_product.hpp"
#include "support/trial.hpp"

using namespace test;
namespace ds = descent;

TEST_CASE("lion: follows itself in double in every storage type") { check_storage<ds::lion>(); }

TEST_CASE("lion: every element moves by lr, against the sign of the interpolated momentum") {
  trial t(ds::lion{.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75}, {1, 1});
  CHECK(t.step({1e-20, -1e20}) == std::vector{0.75, 1.25});
}

TEST_CASE("lion: sign(0) = 0") {
  trial t(ds::lion{.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75}, {1, 1});
  CHECK(t.step({0, -0.0}) == std::vector{1.0, 1.0});
}

TEST_CASE("lion: the direction interpolates with beta1, the momentum with beta2") {
  trial t(ds::lion{.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75}, {1, 1});
  t.step({4, 4});  // m = 1
  CHECK(t.state(0) == std::vector{1.0, 1.0});
  // 0.5 + 0.5 g is above 0 for -0.5 and below for -2; beta2 would say 0.75 + 0.25 g
  CHECK(t.step({-0.5, -2}) == std::vector{0.5, 1.0});
  CHECK(t.state(0) == std::vector{0.625, 0.25});
}

TEST_CASE("lion: decay shrinks the value by lr wd") {
  trial t(ds::lion{.lr = 0.25, .weight_decay = 0.5}, {8});
  CHECK(t.step({0}) == std::vector{7.0});
}
