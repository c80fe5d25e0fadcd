// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <descent/rules/adabelief.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/ademamix.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/optimistic.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>
#include <descent/rules/yogi.hpp>

using namespace test::reference;
namespace ds = descent;

namespace test::reference {
template <> inline constexpr char const* name_of<ds::signsgd> = "signsgd";
template <> inline constexpr char const* name_of<ds::signum> = "signum";
template <> inline constexpr char const* name_of<ds::yogi> = "yogi";
template <> inline constexpr char const* name_of<ds::adabelief> = "adabelief";
template <> inline constexpr char const* name_of<ds::adan> = "adan";
template <> inline constexpr char const* name_of<ds::adopt> = "adopt";
template <> inline constexpr char const* name_of<ds::ademamix> = "ademamix";
template <> inline constexpr char const* name_of<ds::optimistic> = "optimistic";
template <> inline constexpr char const* name_of<ds::optimistic_adam> = "optimistic_adam";
template <> inline constexpr char const* name_of<ds::fromage> = "fromage";
template <> inline constexpr char const* name_of<ds::novograd> = "novograd";
}  // namespace test::reference

TEST_CASE("optax's rules follow optax, and Adan with the paper's weight pytorch_optimizer, for 100 steps") {
  follow_all<ds::signsgd, ds::signum, ds::yogi, ds::adabelief, ds::adan, ds::adopt, ds::ademamix, ds::optimistic,
             ds::optimistic_adam, ds::fromage, ds::novograd>("values_optax.txt");
}

TEST_CASE("ademamix whose alpha and beta3 follow schedules follows optax, whose alpha and b3 do") {
  int cases = 0;
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values_optax.txt")) {
    if (!g.options.contains("schedule")) continue;
    INFO(g.line);
    REQUIRE(g.options.at("schedule") == "grow");
    ++cases;
    auto const rule = configured<ds::ademamix>(g);
    auto const alpha = ds::vary<&ds::ademamix::alpha>(ds::linear{.from = 0, .to = rule.alpha, .steps = 50});
    auto const beta3 = ds::vary<&ds::ademamix::beta3>(ds::linear{.from = 0.9, .to = rule.beta3, .steps = 50});
    CHECK(follow<double>(g, rule, alpha, beta3).way <= 1e-10);
    CHECK(follow<float>(g, rule, alpha, beta3).values <= 2e-6);
  }
  CHECK(cases == 1);
}
