// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/reference.hpp"

using namespace test::reference;
namespace ds = descent;

namespace test::reference {
template <> inline constexpr char const* name_of<ds::sgd> = "sgd";
template <> inline constexpr char const* name_of<ds::adam> = "adam";
template <> inline constexpr char const* name_of<ds::adamw> = "adamw";
template <> inline constexpr char const* name_of<ds::rmsprop> = "rmsprop";
template <> inline constexpr char const* name_of<ds::lion> = "lion";
template <> inline constexpr char const* name_of<ds::lamb> = "lamb";
template <> inline constexpr char const* name_of<ds::lars> = "lars";
template <> inline constexpr char const* name_of<ds::dog> = "dog";
}  // namespace test::reference

TEST_CASE("the first eight rules follow PyTorch and optax for 100 steps") {
  follow_all<ds::sgd, ds::adam, ds::adamw, ds::rmsprop, ds::lion, ds::lamb, ds::lars, ds::dog>("values.txt");
}

TEST_CASE("adamw under warm-up and cosine follows PyTorch's scheduler") {
  int cases = 0;
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values.txt")) {
    if (!g.options.contains("schedule")) continue;
    INFO(g.line);
    REQUIRE(g.options.at("schedule") == "warmup5_cosine10");
    ++cases;
    auto const rule = configured<ds::adamw>(g);
    auto const rate = ds::learning_rate(ds::warmup<ds::cosine>{5, {.peak = rule.lr, .steps = 10}});
    CHECK(follow<double>(g, rule, rate).way <= 1e-10);
    CHECK(follow<float>(g, rule, rate).values <= 2e-6);
  }
  CHECK(cases == 1);
}
