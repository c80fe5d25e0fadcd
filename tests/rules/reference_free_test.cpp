// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/acprop.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/dadapt_adamw.hpp>
#include <descent/rules/dowg.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/schedule_free_sgd.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

using namespace test::reference;
namespace ds = descent;

namespace test::reference {
template <> inline constexpr char const* name_of<ds::schedule_free_sgd> = "schedule_free_sgd";
template <> inline constexpr char const* name_of<ds::schedule_free_adamw> = "schedule_free_adamw";
template <> inline constexpr char const* name_of<ds::dowg> = "dowg";
template <> inline constexpr char const* name_of<ds::prodigy> = "prodigy";
template <> inline constexpr char const* name_of<ds::dadapt_adamw> = "dadapt_adamw";
template <> inline constexpr char const* name_of<ds::madgrad> = "madgrad";
template <> inline constexpr char const* name_of<ds::cocob> = "cocob";
template <> inline constexpr char const* name_of<ds::acprop> = "acprop";
}  // namespace test::reference

TEST_CASE("rules without a rate or a schedule to tune follow optax and pytorch_optimizer for 100 steps") {
  follow_all<ds::schedule_free_sgd, ds::schedule_free_adamw, ds::dowg, ds::prodigy, ds::dadapt_adamw, ds::madgrad,
             ds::cocob, ds::acprop>("values_free.txt");
}

namespace {

/// f(case, rule) for every case of a file that is about one of these rules; how many these are.
template <class... Rules, class F> int each_case(std::string const& file, F f) {
  int cases = 0;
  for (golden const& g : read_goldens(std::string(DESCENT_TESTS_DIR "/reference/") + file)) {
    INFO(g.line);
    auto const one = [&]<class Rule>(Rule) {
      if (g.rule != name_of<Rule>) return;
      ++cases;
      f(g, configured<Rule>(g));
    };
    (one(Rules{}), ...);
  }
  return cases;
}

/// The largest distance from a case of what(p, optimizer, tensor, element), with gradients of(p, tensor, element, t).
template <class Rule, class Gradient, class What>
double farthest(golden const& g, Rule const& rule, Gradient of, What what) {
  std::vector<std::vector<double>> p(3), grad(3);
  descent::parameters<double> list;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < sizes[k]; ++i) p[k].push_back(start(k, i));
    grad[k].resize(sizes[k]);
    list.add(std::to_string(k), p[k].data(), grad[k].data(), sizes[k]);
  }
  descent::optimizer opt{list, rule};
  double most = 0;
  for (int t = 1; t <= g.steps.back().step; ++t) {
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) grad[k][i] = of(p[k][i], k, i, std::size_t(t));
    opt.step();
    for (recorded const& r : g.steps) {
      if (r.step != t) continue;
      for (std::size_t i = 0; i < r.values.size(); ++i) {
        double const error = std::abs(what(p[r.tensor][i], opt, r.tensor, i) - r.values[i]);
        most = error <= most ? most : error;
      }
    }
  }
  return most;
}

}  // namespace

TEST_CASE("schedule-free rules under a warm-up follow pytorch_optimizer, which warms up by itself") {
  int scheduled = 0;
  each_case<ds::schedule_free_sgd, ds::schedule_free_adamw>("values_free.txt", [&](golden const& g, auto const& rule) {
    if (!g.options.contains("schedule")) return;
    REQUIRE(g.options.at("schedule") == "warmup10");
    ++scheduled;
    auto const rate = ds::learning_rate(ds::warmup<ds::constant>{.steps = 10, .then = {rule.lr}});
    CHECK(follow<double>(g, rule, rate).values <= 1e-13);
    CHECK(follow<float>(g, rule, rate).values <= 1e-5);
  });
  CHECK(scheduled == 4);
}

TEST_CASE("what schedule-free rules average is what optax would have one evaluate") {
  int const cases = each_case<ds::schedule_free_sgd, ds::schedule_free_adamw>(
      "values_free_averages.txt", []<class Rule>(golden const& g, Rule const& rule) {
        auto const x = [&](double y, auto const& opt, std::size_t k, std::size_t i) {
          typename Rule::template state<double> s{};
          s.z = opt.state(std::to_string(k), 0)[i];
          return rule.averaged(y, s);
        };
        auto const of = [](double, std::size_t k, std::size_t i, std::size_t t) { return gradient(k, i, t); };
        CHECK(farthest(g, rule, of, x) <= 1e-13);
      });
  CHECK(cases == 4);
}

TEST_CASE("rules that estimate a distance follow optax and pytorch_optimizer where it grows") {
  int const cases = each_case<ds::dowg, ds::prodigy, ds::dadapt_adamw>(
      "values_free_quadratic.txt", [](golden const& g, auto const& rule) {
        auto const of = [](double p, std::size_t k, std::size_t, std::size_t) { return (p - 2) * 2 / double(1 << k); };
        // d grows up to a millionfold, and rounding with it: the peers are up to 8e-12 apart.
        CHECK(farthest(g, rule, of, [](double p, auto const&...) { return p; }) <= 1e-10);
      });
  CHECK(cases == 11);
}
