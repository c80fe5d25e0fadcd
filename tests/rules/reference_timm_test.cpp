// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/adabelief.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/larc.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/novograd.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <span>

using namespace test::reference;
namespace ds = descent;

namespace test::reference {
template <> inline constexpr char const* name_of<ds::lars> = "lars";
template <> inline constexpr char const* name_of<ds::larc<ds::sgd>> = "larc";
template <> inline constexpr char const* name_of<ds::lamb> = "lamb";
template <> inline constexpr char const* name_of<ds::novograd> = "novograd";
template <> inline constexpr char const* name_of<ds::madgrad> = "madgrad";
template <> inline constexpr char const* name_of<ds::adopt> = "adopt";
template <> inline constexpr char const* name_of<ds::adan> = "adan";
template <> inline constexpr char const* name_of<ds::adabelief> = "adabelief";
template <> inline constexpr char const* name_of<ds::lion> = "lion";
template <> inline constexpr char const* name_of<ds::layerwise<ds::adam>> = "layerwise_adam";
template <> inline constexpr char const* name_of<ds::layerwise<ds::rmsprop>> = "layerwise_rmsprop";
}  // namespace test::reference

TEST_CASE("nine rules follow timm, and the trust ratio around adam and rmsprop optax, for 100 steps") {
  follow_all<ds::lars, ds::larc<ds::sgd>, ds::lamb, ds::novograd, ds::madgrad, ds::adopt, ds::adan,
             ds::adabelief, ds::lion, ds::layerwise<ds::adam>, ds::layerwise<ds::rmsprop>>("values_timm.txt");
}

TEST_CASE("lamb behind a clipped norm of all gradients follows timm, whose Lamb clips by itself") {
  int cases = 0;
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values_timm.txt")) {
    if (g.rule != "lamb" || !g.options.contains("with")) continue;
    INFO(g.line);
    std::string const with = g.options.at("with");
    REQUIRE(with.starts_with("clip_norm:"));
    ++cases;
    ds::clip_norm const clip{std::stod(with.substr(10))};
    auto const rule = configured<ds::lamb>(g);
    CHECK(follow<double>(g, rule, clip).values <= 1e-13);
    CHECK(follow<float>(g, rule, clip).values <= 1e-5);
    CHECK(follow<double>(g, rule).values >= 1e-4);
  }
  CHECK(cases == 3);
}

namespace {

/// How far rmsprop is from a case in which v starts at 1.
template <class Real> double distance_from_one(golden const& g) {
  std::vector<std::vector<Real>> value(3), grad(3);
  ds::parameters<Real> list;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < sizes[k]; ++i) value[k].push_back(Real(start(k, i)));
    grad[k].resize(sizes[k]);
    list.add(std::to_string(k), value[k].data(), grad[k].data(), sizes[k]);
  }
  ds::optimizer opt{list, configured<ds::rmsprop>(g)};
  for (std::size_t k = 0; k < 3; ++k) {
    std::vector<Real> const ones(sizes[k], Real(1));
    opt.template set_state<0>(std::to_string(k), std::span<Real const>(ones));
  }
  double most = 0;
  for (int t = 1; t <= 100; ++t) {
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) grad[k][i] = Real(gradient(k, i, std::size_t(t)));
    opt.step();
    for (recorded const& r : g.steps)
      for (std::size_t i = 0; r.step == t && i < r.values.size(); ++i) {
        double const error = std::abs(double(value[r.tensor][i]) - r.values[i]);
        most = error <= most ? most : error;
      }
  }
  return most;
}

}  // namespace

TEST_CASE("rmsprop with eps inside and v at 1 follows timm's RMSpropTF with lr outside the buffer") {
  int cases = 0;
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values_timm.txt")) {
    if (g.rule != "rmsprop") continue;
    INFO(g.line);
    REQUIRE(g.options.at("with") == "v:1");
    ++cases;
    CHECK(distance_from_one<double>(g) <= 1e-13);
    CHECK(distance_from_one<float>(g) <= 1e-5);
  }
  CHECK(cases == 2);
}
