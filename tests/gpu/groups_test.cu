// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/clip.hpp>
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lars.hpp>

namespace {

std::vector<test::tensor> const model{{100, 0}, {4099, 1}, {9, 0, 1, 1}, {77, 2}};

/// The launches that f makes.
template <class F> std::int64_t launches(F const& f) {
  auto const before = descent::detail::launches;
  f();
  return descent::detail::launches - before;
}

/// Own hyperparameters from the start, then a change, a frozen group, and a thaw.
template <class Twins> void change_groups(Twins& both) {
  auto const each = [&](auto const& f) { f(both.host), f(both.device); };
  each([](auto& o) { o.group(1).lr = 0.03, o.group(1).weight_decay = 0; });
  both.steps(2);
  each([](auto& o) { o.group(0).lr = 0.02, o.freeze(1); });
  both.steps(2);
  both.expect_same();
  each([](auto& o) { o.freeze(1, false), o.freeze(2); });
  both.steps(1);
  both.expect_same();
}

}  // namespace

TEST_CASE("groups have their own hyperparameters, change between steps and freeze as on the host") {
  test::stream s;
  test::tensors<float> x{model, s};
  test::twins both{x, descent::adamw{.lr = 0.01}, descent::clip_norm{1}};
  change_groups(both);
  test::expect_same(both.host.report().grad_norm, both.device.report().grad_norm, "norm");
}

TEST_CASE("groups change as on the host for a rule with sums over tensors") {
  test::stream s;
  test::tensors<float> x{model, s};
  test::twins both{x, descent::lars{.lr = 0.01}};
  change_groups(both);
}

TEST_CASE("groups change as on the host for a rule with sums over the model") {
  test::stream s;
  test::tensors<float> x{model, s};
  test::twins both{x, descent::dog{.reps = 0.1}};
  change_groups(both);
}

TEST_CASE("a frozen group is not touched and does not count, whatever its gradient") {
  test::stream s;
  test::tensors<float> x{model, s};
  test::twins both{x, descent::adamw{}, descent::clip_norm{1}};
  both.host.freeze(1), both.device.freeze(1);
  x.gradient_of(1, 4098) = INFINITY;
  std::vector<float> const before(&x.value_of(1, 0), &x.value_of(1, 0) + 4099);
  both.step();
  both.expect_same();
  CHECK(both.device.report().applied);
  CHECK(std::equal(before.begin(), before.end(), &x.value_of(1, 0)));
}

TEST_CASE(
    "a step takes three launches, two without a pass for the norm, one more after a change of "
    "groups") {
  test::stream s;
  test::tensors<float> x{model, s};
  descent::optimizer with{x.on_device(), descent::adamw{}, descent::clip_norm{1}, descent::cuda{s}};
  CHECK(launches([&] { with.step(); }) == 3);
  with.group(1).lr = 0.5;
  CHECK(launches([&] { with.step(); }) == 4);
  CHECK(launches([&] { with.step(); }) == 3);
  CHECK(launches([&] { with.zero_grad(); }) == 1);
  CHECK(launches([&] { with.report(); }) == 0);

  descent::optimizer without{x.on_device(), descent::adamw{}, descent::cuda{s}};
  CHECK(launches([&] { without.step(); }) == 2);
  descent::optimizer sums{x.on_device(), descent::lars{}, descent::cuda{s}};
  CHECK(launches([&] { sums.step(); }) == 3);
}

TEST_CASE("more groups than one launch carries are set in several") {
  test::stream s;
  std::vector<test::tensor> list;
  for (int g = 0; g < 100; ++g) list.push_back({3, g});
  test::tensors<float> x{list, s};
  test::twins both{x, descent::adamw{}, descent::clip_norm{1}};
  for (int g = 0; g < 100; ++g) both.host.group(g).lr = both.device.group(g).lr = 1e-3 * g;
  both.steps(2);
  both.expect_same();
}
