// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>

#include <doctest/doctest.h>

#define DESCENT_RULE_FAMILY core
#include "support/storage_product.hpp"
#include "support/trial.hpp"

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }
}  // namespace

TEST_CASE("adamw: follows itself in double in every storage type") { check_storage<ds::adamw>(); }

TEST_CASE("adamw: the first step moves by lr, against the sign of the gradient") {
  trial t(ds::adamw{.lr = 0.5, .eps = 0, .weight_decay = 0}, {1, 1, 1});
  auto const p = t.step({3, -1e-3, 1e5});
  CHECK(p[0] == near(0.5));
  CHECK(p[1] == near(1.5));
  CHECK(p[2] == near(0.5));
}

TEST_CASE("adamw: decay shrinks the value by lr wd, whatever the gradient and the moments") {
  trial t(ds::adamw{.lr = 0.5, .eps = 1, .weight_decay = 0.25}, {8, 8});
  auto const p = t.step({0, 1});
  CHECK(p[0] == 7);
  CHECK(p[1] == near(7 - 0.5 * 0.5));
  CHECK(t.state(0)[0] == 0);
  CHECK(t.state(1)[0] == 0);
}

TEST_CASE("adamw: without decay it is adam") {
  trial a(ds::adamw{.lr = 0.1, .weight_decay = 0}, {1, -2, 3});
  trial b(ds::adam{.lr = 0.1}, {1, -2, 3});
  for (int t = 1; t <= 10; ++t) {
    std::vector const g{gradient(0, 0, t), gradient(0, 1, t), gradient(0, 2, t)};
    CHECK(a.step(g) == b.step(g));
  }
}
