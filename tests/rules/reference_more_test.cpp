// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/descent.hpp>
#include <descent/rules/adabound.hpp>
#include <descent/rules/padam.hpp>
#include <descent/rules/qhadam.hpp>
#include <descent/rules/qhm.hpp>
#include <descent/rules/sophia.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <span>

using namespace test::reference;
namespace ds = descent;

namespace test::reference {
template <> inline constexpr char const* name_of<ds::qhm> = "qhm";
template <> inline constexpr char const* name_of<ds::qhadam> = "qhadam";
template <> inline constexpr char const* name_of<ds::adabound> = "adabound";
template <> inline constexpr char const* name_of<ds::padam> = "padam";
template <> inline constexpr char const* name_of<ds::sophia> = "sophia";
// pytorch_optimizer adds 1e-15 to v under the root.
template <> inline constexpr tolerance allowed<ds::adabound>{.in_double = 1e-12};
}  // namespace test::reference

TEST_CASE("qhm, qhadam, adabound, padam and sophia follow their peers for 100 steps") {
  follow_all<ds::qhm, ds::qhadam, ds::adabound, ds::padam, ds::sophia>("values_more.txt");
}

namespace {

/// How far sophia is from a case whose caller feeds h after steps 1, 6, 11, ...
template <class Real> double distance_fed(golden const& g) {
  std::vector<std::vector<Real>> value(3), grad(3);
  ds::parameters<Real> list;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < sizes[k]; ++i) value[k].push_back(Real(start(k, i)));
    grad[k].resize(sizes[k]);
    list.add(std::to_string(k), value[k].data(), grad[k].data(), sizes[k]);
  }
  ds::optimizer opt{list, configured<ds::sophia>(g)};
  double most = 0;
  for (std::size_t t = 1; t <= 100; ++t) {
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) grad[k][i] = Real(gradient(k, i, t));
    opt.step();
    for (std::size_t k = 0; k < 3 && t % 5 == 1; ++k) {
      std::vector<Real> h;
      for (Real old : opt.template state<1>(std::to_string(k)))
        h.push_back(Real(0.75 * old + 0.25 * (double((h.size() * 13 + k * 5 + t * 7) % 17) - 3) / 16));
      opt.template set_state<1>(std::to_string(k), std::span<Real const>(h));
    }
    for (recorded const& r : g.steps)
      for (std::size_t i = 0; std::size_t(r.step) == t && i < r.values.size(); ++i) {
        double const error = std::abs(double(value[r.tensor][i]) - r.values[i]);
        most = error <= most ? most : error;
      }
  }
  return most;
}

}  // namespace

TEST_CASE("sophia with the curvature that its caller writes follows optax") {
  int cases = 0;
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values_more.txt")) {
    if (!g.options.contains("schedule")) continue;
    INFO(g.line);
    REQUIRE(g.options.at("schedule") == "curvature");
    ++cases;
    CHECK(distance_fed<double>(g) <= 1e-13);
    CHECK(distance_fed<float>(g) <= 1e-5);
  }
  CHECK(cases == 2);
}
