// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/rmsprop.hpp>

#include <doctest/doctest.h>

#define DESCENT_RULE_FAMILY core
#include "support/storage_product.hpp"
#include "support/trial.hpp"

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }
}  // namespace

TEST_CASE("rmsprop: follows itself in double in every storage type") {
  check_storage<ds::rmsprop>();
}

TEST_CASE("rmsprop: the first two steps, by hand; eps is outside the root") {
  trial t(ds::rmsprop{.lr = 1, .alpha = 0.75, .eps = 0.5}, {0});
  CHECK(t.step({2})[0] == near(-2 / 1.5));                                  // v = 1
  CHECK(t.step({0})[0] == near(-2 / 1.5));                                  // v = 0.75
  CHECK(t.step({2})[0] == near(-2 / 1.5 - 2 / (std::sqrt(1.5625) + 0.5)));  // v = 0.5625 + 1
  CHECK(t.state(1).empty());
  CHECK(t.state(2).empty());
}

TEST_CASE("rmsprop: lr is outside the momentum buffer") {
  trial t(ds::rmsprop{.lr = 0.5, .alpha = 0.75, .eps = 0, .momentum = 0.5}, {0});
  CHECK(t.step({2})[0] == near(-1));    // b = 2
  CHECK(t.step({0})[0] == near(-1.5));  // b = 1
  CHECK(t.state(2)[0] == near(1));
}

TEST_CASE("rmsprop: centered divides by the deviation from the mean, not by the gradient's size") {
  trial t(ds::rmsprop{.lr = 1, .alpha = 0.5, .eps = 0, .centered = true}, {0});
  CHECK(t.step({2})[0] == near(-2));  // v = 2, g_ = 1: deviation 1
  CHECK(t.state(1)[0] == near(1));
}

TEST_CASE("rmsprop: a variance that rounding made negative counts as 0") {
  ds::rmsprop const rule{.lr = 1, .alpha = 0.5, .eps = 0.5, .centered = true};
  auto const k = rule.at(1);
  // v = 0.5 0.25 + 0.5 g^2 and g_ = 0.5 1 + 0.5 g with g = 1: v - g_^2 < 0
  ds::rmsprop::state<double> s{.v = 0.25, .g_ = 1, .b = 0};
  CHECK(ds::rmsprop::update(0.0, 1.0, s, k) == near(-1 / 0.5));
}

TEST_CASE("rmsprop: eps inside the root") {
  trial t(ds::rmsprop{.lr = 1, .alpha = 0.75, .eps = 0.5, .eps_inside = true}, {0});
  CHECK(t.step({2})[0] == near(-2 / std::sqrt(1.5)));  // v = 1
}
