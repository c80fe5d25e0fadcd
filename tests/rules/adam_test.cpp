// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/adam.hpp>

#include <doctest/doctest.h>

#define DESCENT_RULE_FAMILY core
#include "support/storage_product.hpp"
#include "support/trial.hpp"

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }
}  // namespace

TEST_CASE("adam: follows itself in double in every storage type") { check_storage<ds::adam>(); }

TEST_CASE("adam: the first step moves by lr, against the sign of the gradient") {
  trial t(ds::adam{.lr = 0.5, .eps = 0}, {1, 1, 1});
  auto const p = t.step({3, -1e-3, 1e5});
  CHECK(p[0] == near(0.5));
  CHECK(p[1] == near(1.5));
  CHECK(p[2] == near(0.5));
}

TEST_CASE("adam: decay is part of the gradient, so the first step has length lr all the same") {
  trial t(ds::adam{.lr = 0.5, .eps = 0, .weight_decay = 0.1}, {1, 1});
  auto const p = t.step({0, -0.3});
  CHECK(p[0] == near(0.5));
  CHECK(p[1] == near(1.5));
}

TEST_CASE("adam: three steps by hand") {
  trial t(ds::adam{.lr = 1, .beta1 = 0.5, .beta2 = 0.75, .eps = 0.5}, {0});
  CHECK(t.step({2})[0] == near(-0.8));  // m = 1, v = 1; unbiased 2 and 4
  CHECK(t.step({2})[0] == near(-1.6));  // m = 1.5, v = 1.75; unbiased by 0.75 and 0.4375
  double const m = -0.25 / 0.875, v = 2.3125 / 0.578125;
  CHECK(t.step({-2})[0] == near(-1.6 - m / (std::sqrt(v) + 0.5)));
}

TEST_CASE("adam: eps_on_raw adds eps before the correction, so it counts 1 / sqrt(1 - b2^t) times as much") {
  trial t(ds::adam{.lr = 1, .beta1 = 0.5, .beta2 = 0.75, .eps = 0.5, .eps_on_raw = true}, {0});
  CHECK(t.step({2})[0] == near(-2 / (2 + 0.5 / 0.5)));  // m = 1, v = 1; unbiased by 0.5 and 0.25
}
