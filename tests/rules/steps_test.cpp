// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

#include <doctest/doctest.h>

#include "support/all_rules.hpp"
#include "support/larger.hpp"
#include "support/oracle.hpp"
#include "support/step_laws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

/// What a step does around its rule: skips, clipping, groups, frozen groups.

using namespace test;
namespace ds = descent;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

double norm(problem<double> const& p) {
  double squares = 0;
  for (auto const& g : p.grad)
    for (double x : g) squares += x * x;
  return std::sqrt(squares);
}

double distance(problem<double> const& p, auto const& truth) {
  double most = 0;
  for (std::size_t k = 0; k < p.value.size(); ++k)
    for (std::size_t i = 0; i < p.value[k].size(); ++i)
      most = test::larger(most, std::abs(p.value[k][i] - truth.tensors[k].p[i]));
  return most;
}

auto const& sizes = sizes_of_steps;

}  // namespace

TEST_CASE("every rule: a step with one bad gradient changes nothing, now or later") {
  each_rule([](auto const& row) { check_skips<double>(row, ds::clip_norm{5}); });
}

TEST_CASE("skip_nonfinite skips, and names the tensor with the bad gradient") {
  problem<float> p(sizes);
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::skip_nonfinite{}};
  p.set_gradients(1);
  p.grad[3].back() = float(infinity);
  auto const before = p.value;
  opt.step();
  CHECK(same_bits(p.value, before));
  CHECK(opt.report().why.find("'tensor3'") != std::string::npos);
  CHECK(opt.report().skipped == 1);
}

TEST_CASE("without a policy that checks gradients, a bad gradient reaches only its element") {
  problem<float> p(sizes);
  ds::optimizer opt{p.parameters(), ds::adamw{}};
  p.set_gradients(1);
  p.grad[1][7] = float(not_a_number);
  opt.step();
  CHECK(opt.report().step == 1);
  std::size_t bad = 0;
  for (auto const& x : p.value)
    for (float value : x) bad += std::isnan(value);
  CHECK(bad == 1);
  CHECK(std::isnan(p.value[1][7]));
}

TEST_CASE("every rule: clip_norm multiplies all gradients by max / norm, and by 1 below it") {
  each_rule([](auto const& row) {
    for (double max : {2.0, 1e3}) {
      INFO(row.name, ", max ", max);
      problem<double> p(sizes);
      oracle truth(row.rule, p);
      auto opt = optimizer_of(p.parameters(), row.rule, ds::clip_norm{max});
      for (int t = 1; t <= 4; ++t) {
        p.set_gradients(t);
        truth.take_gradients(p);
        double const expected = norm(p) > max ? max / norm(p) : 1;
        opt.step();
        truth.step(expected);
        CHECK(opt.report().grad_norm == doctest::Approx(norm(p)).epsilon(1e-13));
        CHECK(opt.report().clip_factor == doctest::Approx(expected).epsilon(1e-13));
      }
      CHECK((max > norm(p)) == (opt.report().clip_factor == 1));
      CHECK(distance(p, truth) <= 1e-13);
    }
  });
}

TEST_CASE(
    "every rule: each group follows its own fields, and a frozen one is left alone and counts in "
    "no norm") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    INFO(row.name);
    problem<double> p(sizes);
    p.group = {0, 1, 0, 2};
    oracle truth(row.rule, p, 3);
    auto opt = optimizer_of(p.parameters(), row.rule, ds::clip_norm{20});
    auto const change = [](Rule& rule) {
      rule.lr *= 0.25;
      if constexpr (requires { rule.weight_decay; }) rule.weight_decay += 0.01;
    };
    change(opt.group(1));
    change(truth.rules[1]);
    opt.freeze(2);
    truth.frozen[2] = true;
    auto const sleeping = p.value[3];
    for (int t = 1; t <= 4; ++t) {
      p.set_gradients(t);
      truth.take_gradients(p);
      std::fill(p.grad[3].begin(), p.grad[3].end(), not_a_number);
      auto awake = p;
      awake.grad[3].clear();
      opt.step();
      truth.step(std::min(1.0, 20 / norm(awake)));
      CHECK(opt.report().applied);
      CHECK(opt.report().grad_norm == doctest::Approx(norm(awake)).epsilon(1e-13));
    }
    CHECK(distance(p, truth) <= 1e-13);
    CHECK(same_bits(p.value[3], sleeping));
    for (std::size_t s = 0; s < ds::detail::members<Rule::template state>; ++s)
      for (std::size_t i = 0; i < opt.state("tensor3", s).size(); ++i)
        CHECK(opt.state("tensor3", s)[i] ==
              reinterpret_cast<double const*>(&truth.tensors[3].s[i])[s]);  // the start value
  });
}

TEST_CASE("a group that thaws continues from where it was") {
  problem<double> p(sizes);
  p.group = {0, 1, 0, 1};
  ds::sgd const rule{.lr = 0.1, .momentum = 0.5};
  oracle truth(rule, p, 2);
  ds::optimizer opt{p.parameters(), rule};
  for (int t = 1; t <= 6; ++t) {
    opt.freeze(1, t == 3 || t == 4);
    truth.frozen[1] = t == 3 || t == 4;
    p.set_gradients(t);
    truth.take_gradients(p);
    opt.step();
    truth.step();
  }
  CHECK(distance(p, truth) <= 1e-14);
}

TEST_CASE("scheduled fields equal the same numbers set by hand, and skipped steps do not count") {
  auto const lr = ds::warmup<ds::linear>{.steps = 3, .then = {.from = 0.1, .to = 0.01, .steps = 4}};
  auto const decay = ds::linear{.from = 0.1, .to = 0.5, .steps = 5};
  problem<double> scheduled(sizes), by_hand(sizes);
  scheduled.group = by_hand.group = {0, 1, 0, 1};
  ds::adamw const rule{};
  ds::optimizer a{scheduled.parameters(), rule, ds::learning_rate(lr), ds::vary<&ds::adamw::weight_decay>(decay),
                  ds::skip_nonfinite{}};
  ds::optimizer b{by_hand.parameters(), rule};
  for (int t = 1; t <= 9; ++t) {
    scheduled.set_gradients(t);
    scheduled.grad[1][5] = not_a_number;
    a.step();
    scheduled.set_gradients(t);
    by_hand.set_gradients(t);
    for (int g : {0, 1}) b.group(g).lr = lr(t - 1), b.group(g).weight_decay = decay(t - 1);
    a.step();
    b.step();
    CHECK(a.report().learning_rate == lr(t - 1));
    CHECK(same_bits(scheduled.value, by_hand.value));
  }
}

TEST_CASE("DoG's distance and sums follow a schedule of lr no more than they follow lr") {
  problem<double> p(sizes);
  ds::dog const rule{.reps = 1e-2};
  auto const lr = ds::linear{.from = 1, .to = 0.1, .steps = 6};
  oracle truth(rule, p);
  ds::optimizer opt{p.parameters(), rule, ds::learning_rate(lr)};
  for (int t = 1; t <= 8; ++t) {
    p.set_gradients(t);
    truth.take_gradients(p);
    truth.rules[0].lr = lr(t - 1);
    opt.step();
    truth.step();
  }
  CHECK(distance(p, truth) <= 1e-13);
}
