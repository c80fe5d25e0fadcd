// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/rules/dog.hpp>

#include <doctest/doctest.h>

#define DESCENT_RULE_FAMILY core
#include "support/storage_product.hpp"
#include "support/trial.hpp"

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }
}  // namespace

TEST_CASE("dog: follows itself in double in every storage type") { check_storage<ds::dog>(); }

TEST_CASE("dog: the first step has length lr reps (1 + ||p0||)") {
  trial t(ds::dog{.lr = 2, .reps = 0.125, .eps = 1e-300}, {3, 4});
  auto const p = t.step({6, 8});  // G = 100
  CHECK(p[0] == near(3 - 2 * 0.125 * 6 * 0.6));
  CHECK(p[1] == near(4 - 2 * 0.125 * 6 * 0.8));
}

TEST_CASE("dog: later steps take the largest distance so far, and all gradients") {
  trial t(ds::dog{.reps = 0.125, .eps = 1e-300}, {7});
  CHECK(t.step({3})[0] == near(6));                     // r = 0.125 8 = 1, G = 9
  CHECK(t.step({4})[0] == near(6 - 0.8));               // r = 1, G = 25
  CHECK(t.step({12})[0] == near(5.2 - 1.8 * 12 / 13));  // r = 1.8, G = 169
  double const r = 7 - (5.2 - 1.8 * 12 / 13);
  CHECK(t.step({-84})[0] == near(7 - r + r * 84 / 85));  // back almost to the start
  double const p = 7 - r + r * 84 / 85;
  CHECK(t.step({0})[0] == near(p));
  CHECK(t.step({132})[0] == near(p - r * 132 / 157));  // r does not shrink
}

TEST_CASE("dog: eps is under the root, and decay part of the gradient") {
  trial t(ds::dog{.reps = 0.5, .eps = 9, .weight_decay = 0.5}, {8});
  CHECK(t.step({0})[0] == near(8 - 0.5 * 9 * 4 / 5));
}

TEST_CASE("dog: distance and gradients are those of all tensors together") {
  std::vector<double> a{3}, b{4}, ga{6}, gb{8};
  ds::parameters<double> list;
  list.add("a", a.data(), ga.data(), 1);
  list.add("b", b.data(), gb.data(), 1, ds::group{1});
  ds::optimizer opt{list, ds::dog{.reps = 0.125, .eps = 1e-300}};
  opt.step();
  CHECK(a[0] == near(3 - 0.125 * 6 * 0.6));
  CHECK(b[0] == near(4 - 0.125 * 6 * 0.8));
}
