// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/lars.hpp>

#include <doctest/doctest.h>

#define DESCENT_RULE_FAMILY core
#include "support/storage_product.hpp"
#include "support/trial.hpp"

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }
}  // namespace

TEST_CASE("lars: follows itself in double in every storage type") { check_storage<ds::lars>(); }

TEST_CASE("lars: the ratio divides by both norms") {
  trial t(ds::lars{.lr = 2, .momentum = 0, .weight_decay = 0.5, .trust = 0.1, .eps = 0.25}, {3, 4});
  double const rate = 2 * 0.1 * 5 / (13 + 0.5 * 5 + 0.25);
  auto const p = t.step({5, 12});
  CHECK(p[0] == near(3 - rate * (5 + 1.5)));
  CHECK(p[1] == near(4 - rate * (12 + 2)));
  CHECK(t.state(0).empty());
}

TEST_CASE("lars: joint_norm divides by the norm of gradient and decay together") {
  trial t(ds::lars{.lr = 2,
                   .momentum = 0,
                   .weight_decay = 0.5,
                   .trust = 0.1,
                   .eps = 0.25,
                   .joint_norm = true},
          {3, 4});
  double const rate = 2 * 0.1 * 5 / (std::hypot(6.5, 14) + 0.25);
  auto const p = t.step({5, 12});
  CHECK(p[0] == near(3 - rate * 6.5));
  CHECK(p[1] == near(4 - rate * 14));
}

TEST_CASE("lars: lr and ratio are inside the buffer") {
  trial t(ds::lars{.lr = 2, .momentum = 0.5, .trust = 0.5}, {3, 4});
  t.step({3, 4});
  CHECK(t.state(0)[0] == near(3));        // 2 0.5 5/5 g
  CHECK(t.step({3, 4})[1] == near(-10));  // p was 0, so the ratio is 1: b = 0.5 4 + 2 4
  CHECK(t.state(0)[1] == near(10));
}

TEST_CASE("lars: the ratio is 1 where a norm is 0") {
  trial from_zero(ds::lars{.lr = 0.25, .momentum = 0}, {0, 0});
  CHECK(from_zero.step({2, -2}) == std::vector{-0.5, 0.5});
  trial at_rest(ds::lars{.lr = 0.25, .momentum = 0, .weight_decay = 0.5}, {3, 4});
  auto const p = at_rest.step({0, 0});
  CHECK(p[0] == near(3 - 0.25 * 1.5));
  CHECK(p[1] == near(4 - 0.25 * 2));
}

TEST_CASE("lars: Nesterov looks ahead by one momentum") {
  trial t(ds::lars{.lr = 2, .momentum = 0.5, .trust = 0.25, .nesterov = true}, {4});
  CHECK(t.step({4})[0] == near(4 - (0.5 * 2 + 2)));
}
