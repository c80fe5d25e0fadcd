// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/lamb.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#define DESCENT_RULE_FAMILY core
#include "support/storage_product.hpp"
#include "support/trial.hpp"

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }
}  // namespace

TEST_CASE("lamb: follows itself in double in every storage type") { check_storage<ds::lamb>(); }

TEST_CASE("lamb: a step has the length of the tensor times lr") {
  trial t(ds::lamb{.lr = 0.25}, {3, 4});
  std::vector<double> before{3, 4};
  for (int i = 1; i <= 3; ++i) {
    auto const after = t.step({gradient(0, 0, i), gradient(0, 1, i)});
    double const moved = std::hypot(after[0] - before[0], after[1] - before[1]);
    CHECK(moved == near(0.25 * std::hypot(before[0], before[1])));
    before = after;
  }
}

TEST_CASE("lamb: the first step, by hand") {
  trial t(ds::lamb{.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75, .eps = 1, .weight_decay = 0.5}, {3, 4});
  double const u[] = {1 / 2. + 1.5, -1 / 2. + 2};  // g / (|g| + eps) + wd p
  double const rate = 0.25 * 5 / std::hypot(u[0], u[1]);
  auto const p = t.step({1, -1});
  CHECK(p[0] == near(3 - rate * u[0]));
  CHECK(p[1] == near(4 - rate * u[1]));
}

TEST_CASE("lamb: the ratio is 1 where a norm is 0") {
  trial from_zero(ds::lamb{.lr = 0.25, .eps = 0}, {0, 0});
  auto const p = from_zero.step({2, -2});
  CHECK(p[0] == near(-0.25));
  CHECK(p[1] == near(0.25));
  trial at_rest(ds::lamb{.lr = 0.25}, {3, 4});
  CHECK(at_rest.step({0, 0}) == std::vector{3.0, 4.0});
}

TEST_CASE("lamb: the ratio stays within its limits") {
  ds::lamb const rule{.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75, .eps = 0};
  for (auto const& [low, high, ratio] : {std::array{0.0, 1.5, 1.5}, std::array{10.0, 20.0, 10.0}}) {
    auto limited = rule;
    limited.min_ratio = low, limited.max_ratio = high;
    trial t(limited, {3, 4});  // 5 / sqrt(2)
    CHECK(t.step({1, -1})[0] == near(3 - 0.25 * ratio));
  }
}

TEST_CASE("lamb: without `always` there is no ratio where there is no decay") {
  trial t(ds::lamb{.lr = 0.25, .eps = 0, .always = false}, {3, 4});
  CHECK(t.step({1, -1})[0] == near(2.75));
  trial decays(ds::lamb{.lr = 0.25, .eps = 0, .weight_decay = 0.5, .always = false}, {3, 4});
  CHECK(decays.step({1, -1})[0] == near(3 - 0.25 * 5 / std::hypot(2.5, 1) * 2.5));
}

TEST_CASE("lamb: without averaging the gradient enters the momentum in full") {
  trial t(ds::lamb{.lr = 0.25, .beta1 = 0.5, .averaging = false}, {3, 4});
  t.step({1, -1});
  t.step({1, -1});
  CHECK(t.state(0)[0] == near(1.5));
}
