// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/policies/clip.hpp>
#include <descent/policies/maximize.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/rprop.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>

#include "support/all_rules.hpp"
#include "support/convergence.hpp"
#include "support/step_laws.hpp"

#include <cmath>

/// Laws of converge, laws and steps for 16-bit types, and maximize for every rule.

using namespace test;
namespace ds = descent;

namespace {

/// In the valley of Rosenbrock's function, the gradient at values rounded to bfloat16 often has another sign. Rules
/// that use signs or clip each element come from 24 to its floor: signSGD to 0.92, Rprop to 3.5, chains to 4.3.
template <class Rule> inline constexpr double floor_of_valley = rosenbrock::close;
template <> [[maybe_unused]] inline constexpr double floor_of_valley<ds::signsgd> = 1;
template <> [[maybe_unused]] inline constexpr double floor_of_valley<ds::rprop> = 4;
template <class... Parts> inline constexpr double floor_of_valley<ds::chain<ds::clip_value, Parts...>> = 5;
template <class... Parts> inline constexpr double floor_of_valley<ds::chain<ds::gradient_sign, Parts...>> = 5;
template <class Rule> function in_bfloat16(function f) {
  if (f.value == rosenbrock::value) f.close = floor_of_valley<Rule>;
  return f;
}

void all_converge(function const& f) {
  each_convergence([&]<class Rule>(Rule const& rule) {
    CHECK(converges<ds::bfloat16>(in_bfloat16<Rule>(f), rule, ds::master<float>{}, ds::clip_norm{1e30}));
  });
}

}  // namespace

TEST_CASE("every rule converges on a quadratic, in bfloat16") { all_converge(function_of<quadratic>); }
TEST_CASE("every rule converges on Rosenbrock's function, in bfloat16") { all_converge(function_of<rosenbrock>); }
TEST_CASE("every rule converges on Beale's function, in bfloat16") { all_converge(function_of<beale>); }
TEST_CASE("every rule converges in logistic regression, in bfloat16") { all_converge(function_of<logistic>); }

TEST_CASE("every rule: a step with one bad gradient in bfloat16 changes no value, master or state") {
  each_rule([](auto const& row) { check_skips<ds::bfloat16>(row, ds::master<float>{}, ds::clip_norm{5}); });
}

TEST_CASE("every rule: maximize steps along the negative gradient") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    INFO(row.name);
    auto const run = [&](double scale, auto... policies) {
      problem<ds::bfloat16> p(sizes_of_steps);
      auto opt = optimizer_of(p.parameters(), row.rule, ds::master<float>{}, ds::clip_norm{5}, policies...);
      for (int t = 1; t <= 5; ++t) {
        p.set_gradients(t, scale);
        opt.step();
      }
      return kept<Rule>(opt, p);
    };
    auto const up = run(1, ds::maximize{});
    CHECK(same_bits(up, run(-1)));
    CHECK_FALSE(same_bits(up, run(1)));
  });
}

TEST_CASE("every rule: finite gradients in pure half up to a hundredth of its largest number leave finite values") {
  each_rule([](auto const& row) {
    for (int order = 0; order < 4; ++order)
      for (double size : {6e-8, 600.}) {
        INFO(row.name, ", order ", order, ", size ", size);
        problem<ds::half> p({13});
        auto opt = optimizer_of(p.parameters(), row.rule, ds::states<ds::half>{});
        CHECK(stay_finite(p, opt, size, order));
      }
  });
}

TEST_CASE(
    "every rule: in pure half, the largest gradients overflow no state: it is saturated, and values stay finite") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    INFO(row.name);
    problem<ds::half> p({13});
    auto opt = optimizer_of(p.parameters(), row.rule, ds::states<ds::half>{});
    CHECK(stay_finite(p, opt, 65504, 0, 4));
    for (auto const& buffer : kept<Rule>(opt, p))
      for (ds::half x : buffer) CHECK_UNARY(std::isfinite(ds::widen<double>(x)));
  });
}

TEST_CASE("trap 10: gradients of zero in pure half give no 0 / 0, with an eps that half does not have") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    INFO(row.name);
    problem<ds::half> p({21});
    Rule rule = row.rule;
    if constexpr (requires { rule.eps; })
      if (rule.eps > 0) rule.eps = 1e-8;
    auto opt = optimizer_of(p.parameters(), rule, ds::states<ds::half>{});
    for (int t = 0; t < 10; ++t) opt.step();
    CHECK(opt.report().step == 10);
    for (ds::half x : p.value[0]) CHECK_UNARY(std::isfinite(ds::widen<double>(x)));
  });
}
