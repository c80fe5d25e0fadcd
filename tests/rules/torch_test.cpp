// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/rules/adadelta.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/linear.hpp>
#include <descent/vary.hpp>

#include <doctest/doctest.h>

#include "support/problem.hpp"
#include "support/trial.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }

constexpr double infinity = std::numeric_limits<double>::infinity();
double const not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Some steps with a zero gradient from 0 and 1, and whether all stays finite.
template <class Rule> bool rests(Rule const& rule) {
  trial t(rule, {0, 1});
  for (int i = 0; i < 3; ++i)
    for (double p : t.step({0, -0.0}))
      if (!std::isfinite(p)) return false;
  return true;
}
}  // namespace

// ---- adagrad -------------------------------------------------------------------------------------------------------

TEST_CASE("adagrad: divides by the root of the sum of squares") {
  trial t(ds::adagrad{.lr = 1, .eps = 0}, {8});
  CHECK(t.step({3})[0] == near(7));
  CHECK(t.step({4})[0] == near(7 - 0.8));
  CHECK(t.step({-12})[0] == near(6.2 + 12.0 / 13));
  CHECK(t.state(0)[0] == 169);
}

TEST_CASE("adagrad: eps is outside the root, or inside as in optax; the sum starts at initial") {
  CHECK(trial(ds::adagrad{.lr = 1, .eps = 11, .initial = 9}, {0}).step({4})[0] == near(-4.0 / 16));
  CHECK(trial(ds::adagrad{.lr = 1, .eps = 11, .initial = 9, .eps_inside = true}, {0}).step({4})[0] == near(-4.0 / 6));
  CHECK(trial(ds::adagrad{.initial = 9}, {1, 2}).state(0) == std::vector{9.0, 9.0});
}

TEST_CASE("adagrad: lr decays from the second step on") {
  trial t(ds::adagrad{.lr = 1, .lr_decay = 0.5, .eps = 0}, {8});
  CHECK(t.step({3})[0] == near(7));
  CHECK(t.step({4})[0] == near(7 - 0.8 / 1.5));
  CHECK(t.step({12})[0] == near(7 - 0.8 / 1.5 - 12.0 / 13 / 2));
}

TEST_CASE("adagrad: 0 where the sum is 0, but not a number where the gradient was none") {
  for (bool inside : {false, true}) {
    CHECK(trial(ds::adagrad{.eps = 0, .eps_inside = inside}, {1}).step({0}) == std::vector{1.0});
    CHECK(std::isnan(trial(ds::adagrad{.eps_inside = inside}, {1}).step({not_a_number})[0]));
  }
}

TEST_CASE("adagrad: decay is part of the gradient and enters the sum") {
  trial t(ds::adagrad{.lr = 1, .eps = 0, .weight_decay = 0.5}, {8});
  CHECK(t.step({0})[0] == near(7));
  CHECK(t.state(0)[0] == 16);
}

TEST_CASE("adagrad: bad input") {
  CHECK_THROWS_WITH(ds::adagrad{.lr = -1}.check(), "adagrad: lr must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::adagrad{.lr_decay = -1}.check(), "adagrad: lr_decay must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::adagrad{.eps = -1}.check(), "adagrad: eps must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::adagrad{.weight_decay = -1}.check(),
                    "adagrad: weight_decay must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::adagrad{.initial = -1}.check(), "adagrad: initial must be finite and at least 0, is -1");
  CHECK_NOTHROW(ds::adagrad{}.check());
}

// ---- adadelta ------------------------------------------------------------------------------------------------------

TEST_CASE("adadelta: eps is inside both roots, and lr outside what it remembers") {
  trial t(ds::adadelta{.lr = 0.5, .rho = 0.5, .eps = 1}, {0});
  CHECK(t.step({4})[0] == near(-0.5 * 4 / 3));  // v = 8, d = 4/3
  CHECK(t.state(1)[0] == near(8.0 / 9));
  double const d = std::sqrt((8.0 / 9 + 1) / (6 + 1)) * 2;  // v = 4 + 2
  CHECK(t.step({2})[0] == near(-0.5 * 4 / 3 - 0.5 * d));
}

TEST_CASE("adadelta: decay is part of the gradient; nothing moves where all is 0") {
  CHECK(trial(ds::adadelta{.rho = 0.5, .eps = 1, .weight_decay = 0.5}, {8}).step({0})[0] == near(8 - 4.0 / 3));
  CHECK(rests(ds::adadelta{}));
}

TEST_CASE("adadelta: bad input") {
  CHECK_THROWS_WITH(ds::adadelta{.rho = 1}.check(), "adadelta: rho must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::adadelta{.eps = 0}.check(), "adadelta: eps must be finite and above 0, is 0");
  CHECK_THROWS_WITH(ds::adadelta{.lr = infinity}.check(), "adadelta: lr must be finite and at least 0, is inf");
  CHECK_THROWS_WITH(ds::adadelta{.weight_decay = -1}.check(),
                    "adadelta: weight_decay must be finite and at least 0, is -1");
  CHECK_NOTHROW(ds::adadelta{}.check());
}

// ---- adamax --------------------------------------------------------------------------------------------------------

TEST_CASE("adamax: eps is inside the maximum, not beside it") {
  trial t(ds::adamax{.lr = 1, .beta1 = 0.5, .beta2 = 0.5, .eps = 1}, {0});
  CHECK(t.step({3})[0] == near(-0.75));        // m = 1.5, u = 4, 1 - b1 = 0.5
  CHECK(t.step({0})[0] == near(-0.75 - 0.5));  // m = 0.75, u = max(2, 1), 1 - b1^2 = 0.75
  CHECK(t.state(1)[0] == 2);
  t.step({0});
  t.step({0});
  CHECK(t.state(1)[0] == 1);  // u stays at eps
}

TEST_CASE("adamax: decay is part of the gradient; nothing moves where all is 0") {
  trial t(ds::adamax{.lr = 1, .beta1 = 0.5, .beta2 = 0.5, .eps = 1, .weight_decay = 0.5}, {6});
  CHECK(t.step({0})[0] == near(6 - 0.75));
  CHECK(rests(ds::adamax{}));
}

TEST_CASE("adamax: bad input") {
  CHECK_THROWS_WITH(ds::adamax{.beta1 = 1}.check(), "adamax: beta1 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::adamax{.eps = -1}.check(), "adamax: eps must be finite and at least 0, is -1");
  CHECK_NOTHROW(ds::adamax{}.check());
}

// ---- nadam ---------------------------------------------------------------------------------------------------------

TEST_CASE("nadam: gradient and momentum are each corrected by the product of the momenta") {
  // Without momentum decay mu is b1 / 2 always: 1/4, and M = 1/4, 1/16, 1/64.
  trial t(ds::nadam{.lr = 1, .beta1 = 0.5, .beta2 = 0, .eps = 0, .momentum_decay = 0}, {0});
  double const first = (2 + 0.25 / (1 - 1.0 / 16)) / 2;  // m = 1
  CHECK(t.step({2})[0] == near(-first));
  double const second = (0.75 / (1 - 1.0 / 16) * 3 + 0.25 / (1 - 1.0 / 64) * 2) / 3;  // m = 2
  CHECK(t.step({3})[0] == near(-first - second));
}

TEST_CASE("nadam: the momentum grows from b1 / 2 to b1, by psi") {
  ds::nadam const rule{.beta1 = 0.5, .momentum_decay = 0.25};
  CHECK(rule.mu(4) == near(0.5 * (1 - 0.48)));
  CHECK(rule.mu(8) == near(0.5 * (1 - 0.5 * 0.9216)));
  CHECK(rule.mu(100000) == 0.5);
  ds::nadam::memory old;
  auto const first = rule.at(1, old);  // the gradient weighs by its own mu, the momentum by the next one
  CHECK(old.M == rule.mu(1));
  CHECK(first.g_rate == near(rule.lr * (1 - rule.mu(1)) / (1 - rule.mu(1))));
  CHECK(first.m_rate == near(rule.lr * rule.mu(2) / (1 - rule.mu(1) * rule.mu(2))));
  auto const second = rule.at(2, old);
  CHECK(old.M == near(rule.mu(1) * rule.mu(2)));
  CHECK(second.g_rate == near(rule.lr * (1 - rule.mu(2)) / (1 - rule.mu(1) * rule.mu(2))));
  CHECK(second.m_rate == near(rule.lr * rule.mu(3) / (1 - rule.mu(1) * rule.mu(2) * rule.mu(3))));
}

TEST_CASE("nadam: decay is part of the gradient, or decoupled from the moments") {
  trial t(ds::nadam{.lr = 0.5, .weight_decay = 0.25, .decoupled = true}, {8});
  CHECK(t.step({0})[0] == near(7));
  CHECK(t.state(0)[0] == 0);
  trial u(ds::nadam{.beta1 = 0.5, .beta2 = 0.75, .weight_decay = 0.25}, {8});
  u.step({0});
  CHECK(u.state(0)[0] == 1);
  CHECK(u.state(1)[0] == 1);
  CHECK(rests(ds::nadam{}));
}

TEST_CASE("nadam: bad input") {
  CHECK_THROWS_WITH(ds::nadam{.momentum_decay = -1}.check(),
                    "nadam: momentum_decay must be at least 0, is -1");
  CHECK_THROWS_WITH(ds::nadam{.beta2 = 1}.check(), "nadam: beta2 must be in [0, 1), is 1");
  CHECK_NOTHROW(ds::nadam{}.check());
}

// ---- radam ---------------------------------------------------------------------------------------------------------

TEST_CASE("radam: five steps of momentum, and from the sixth on it adapts") {
  // rho_5 = 4.98 and rho_6 = 5.97 for b2 = 0.99: the paper's threshold would be passed one step earlier.
  trial t(ds::radam{.lr = 0.5, .beta2 = 0.99, .eps = 0}, {0, 0});
  for (int i = 1; i <= 5; ++i) {
    auto const p = t.step({1, 4});  // m^ = g
    CHECK(p[0] == near(-0.5 * i));
    CHECK(p[1] == near(-2.0 * i));
  }
  double const b = std::pow(0.99, 6), rho = 199, now = rho - 12 * b / (1 - b);
  double const r = std::sqrt((now - 4) * (now - 2) * rho / ((rho - 4) * (rho - 2) * now));
  CHECK(now == doctest::Approx(5.97).epsilon(1e-2));
  auto const p = t.step({1, 4});  // sqrt(v^) = g
  CHECK(p[0] == doctest::Approx(-2.5 - 0.5 * r).epsilon(1e-13));
  CHECK(p[1] == doctest::Approx(-10 - 0.5 * r).epsilon(1e-13));
}

TEST_CASE("radam: eps is beside the root of v as it is, uncorrected") {
  ds::radam const rule{.lr = 1, .beta1 = 0, .beta2 = 0.99, .eps = 3};
  ds::radam const bare{.lr = 1, .beta1 = 0, .beta2 = 0.99, .eps = 0};
  ds::radam::state<double> a{.m = 0, .v = 25}, b = a;
  double const with = ds::radam::update(0.0, 5.0, a, rule.at(10));
  double const without = ds::radam::update(0.0, 5.0, b, bare.at(10));
  CHECK(with == near(without * 5 / 8));
}

TEST_CASE("radam: with beta2 at most 0.6 it never adapts") {
  trial t(ds::radam{.lr = 0.5, .beta2 = 0.6}, {0});
  for (int i = 1; i <= 50; ++i) CHECK(t.step({4})[0] == doctest::Approx(-2.0 * i).epsilon(1e-13));
}

TEST_CASE("radam: decay is part of the gradient, or decoupled from the moments") {
  trial t(ds::radam{.lr = 0.5, .weight_decay = 0.25, .decoupled = true}, {8});
  CHECK(t.step({0})[0] == near(7));
  CHECK(t.state(0)[0] == 0);
  trial u(ds::radam{.lr = 0.5, .beta1 = 0.5, .weight_decay = 0.25}, {8});
  CHECK(u.step({0})[0] == near(7));
  CHECK(u.state(0)[0] == 1);
  CHECK(rests(ds::radam{}));
}

TEST_CASE("radam: bad input") {
  CHECK_THROWS_WITH(ds::radam{.beta1 = -0.5}.check(), "radam: beta1 must be in [0, 1), is -0.5");
  CHECK_NOTHROW(ds::radam{}.check());
}

// ---- asgd ----------------------------------------------------------------------------------------------------------

TEST_CASE("asgd: the rate falls from lr, and lambd shrinks by it") {
  trial t(ds::asgd{.lr = 2, .lambd = 0.25, .alpha = 1}, {8});
  CHECK(t.step({1})[0] == near(2));                  // eta = 2: 8 / 2 - 2
  CHECK(t.step({1})[0] == near(2.0 * 2 / 3 - 4.0 / 3));  // eta = 2 / 1.5
  double const p = 2.0 * 2 / 3 - 4.0 / 3;
  CHECK(t.step({1})[0] == near(0.75 * p - 1));  // eta = 2 / 2
}

TEST_CASE("asgd: alpha is the power by which the rate falls") {
  CHECK(ds::asgd{.lr = 2, .lambd = 1.5, .alpha = 0.5}.at(2).eta == near(1));
  CHECK(ds::asgd{.lr = 2, .lambd = 1.5, .alpha = 0.5}.at(1).eta == 2);
}

TEST_CASE("asgd: ax is the parameter until update t0 + 2, and then the mean from there on") {
  trial t(ds::asgd{.lr = 1, .lambd = 0, .t0 = 2}, {0});
  for (double g : {-0.3, 0.7, -5.1}) {
    auto const p = t.step({g});
    CHECK(t.state(0) == p);
  }
  double const first = t.step({-0.3})[0];  // t - 1 - t0 = 1
  CHECK(t.state(0)[0] == first);
  double const second = t.step({-7})[0], third = t.step({-5})[0];
  CHECK(t.state(0)[0] == near((first + second + third) / 3));
}

TEST_CASE("asgd: decay is part of the gradient") {
  CHECK(trial(ds::asgd{.lr = 0.5, .lambd = 0, .weight_decay = 0.25}, {8}).step({0})[0] == near(7));
}

TEST_CASE("asgd: bad input") {
  CHECK_THROWS_WITH(ds::asgd{.lr = -1}.check(), "asgd: lr must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::asgd{.lambd = -1}.check(), "asgd: lambd must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::asgd{.alpha = -1}.check(), "asgd: alpha must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::asgd{.t0 = -1}.check(), "asgd: t0 must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::asgd{.weight_decay = -1}.check(), "asgd: weight_decay must be finite and at least 0, is -1");
  CHECK_NOTHROW(ds::asgd{}.check());
}

// ---- rprop ---------------------------------------------------------------------------------------------------------

TEST_CASE("rprop: the step is lr, grows while the sign stays and shrinks when it changes") {
  trial t(ds::rprop{.lr = 0.5, .eta_minus = 0.5, .eta_plus = 1.5}, {0});
  CHECK(t.step({1e-9}) == std::vector{-0.5});  // unlike optax.rprop, which lags one call
  CHECK(t.step({70}) == std::vector{-1.25});   // 0.75
  CHECK(t.step({-1}) == std::vector{-1.25});   // 0.375, and the gradient counts as 0
  CHECK(t.state(0)[0] == 0);
  CHECK(t.state(1)[0] == 0.375);
  CHECK(t.step({-1}) == std::vector{-0.875});   // after a 0 the step stays
  CHECK(t.step({-1}) == std::vector{-0.3125});  // 0.5625
}

TEST_CASE("rprop: a gradient of 0 leaves the step and is remembered") {
  trial t(ds::rprop{.lr = 0.5}, {0});
  t.step({1});
  CHECK(t.step({0}) == std::vector{-0.5});
  CHECK(t.step({-1}) == std::vector{0.0});  // no change of sign
  CHECK(t.state(1)[0] == 0.5);
}

TEST_CASE("rprop: the step stays in its range, the first one too") {
  ds::rprop const rule{.lr = 8, .eta_minus = 0.25, .eta_plus = 4, .min_step = 0.5, .max_step = 1};
  trial t(rule, {0});
  CHECK(t.step({1}) == std::vector{-1.0});
  CHECK(t.step({1}) == std::vector{-2.0});
  CHECK(t.step({-1}) == std::vector{-2.0});
  CHECK(t.state(1)[0] == 0.5);
  trial u(ds::rprop{.lr = 0, .min_step = 0.25}, {0});
  CHECK(u.step({1}) == std::vector{-0.25});
}

TEST_CASE("rprop: a schedule of lr changes nothing") {
  std::vector<double> p{0, 1}, q = p, g(2);
  ds::parameters<double> a, b;
  a.add("p", p.data(), g.data(), 2);
  b.add("q", q.data(), g.data(), 2);
  ds::optimizer plain{a, ds::rprop{.lr = 0.25}};
  ds::optimizer scheduled{b, ds::rprop{.lr = 0.25}, ds::learning_rate(ds::linear{.from = 1, .to = 0, .steps = 3})};
  for (int t = 1; t <= 5; ++t) {
    for (std::size_t i = 0; i < 2; ++i) g[i] = gradient(0, i, t);
    plain.step();
    scheduled.step();
    CHECK(p == q);
  }
}

TEST_CASE("rprop: bad input") {
  CHECK_THROWS_WITH(ds::rprop{.lr = -1}.check(), "rprop: lr must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::rprop{.eta_minus = 1}.check(), "rprop: eta_minus must be in (0, 1), is 1");
  CHECK_THROWS_WITH(ds::rprop{.eta_minus = 0}.check(), "rprop: eta_minus must be in (0, 1), is 0");
  CHECK_THROWS_WITH(ds::rprop{.eta_plus = 1}.check(), "rprop: eta_plus must be finite and above 1, is 1");
  CHECK_THROWS_WITH(ds::rprop{.min_step = -1}.check(), "rprop: min_step must be finite and at least 0, is -1");
  ds::rprop const empty{.min_step = 2, .max_step = 1};
  CHECK_THROWS_WITH(empty.check(), "rprop: max_step must be finite and at least min_step, is 1");
  CHECK_NOTHROW(ds::rprop{}.check());
}

// ---- amsgrad -------------------------------------------------------------------------------------------------------

TEST_CASE("amsgrad: divides by the largest v so far") {
  trial t(ds::amsgrad{.lr = 1, .beta1 = 0, .beta2 = 0, .eps = 0}, {0});
  CHECK(t.step({4})[0] == near(-1));
  CHECK(t.step({1})[0] == near(-1.25));
  CHECK(t.step({-8})[0] == near(-0.25));
  CHECK(t.state(1)[0] == 64);
}

TEST_CASE("amsgrad: the maximum is over v as it is, corrected afterwards; eps is beside the corrected root") {
  trial t(ds::amsgrad{.lr = 1, .beta1 = 0, .beta2 = 0.5, .eps = 1}, {0});
  CHECK(t.step({4})[0] == near(-4.0 / 5));                                        // v = 8
  CHECK(t.step({2})[0] == near(-4.0 / 5 - 2 / (std::sqrt(8 / 0.75) + 1)));        // v = 6; optax: sqrt(16) + 1
  CHECK(t.state(1)[0] == 6);
  CHECK(t.state(2)[0] == 8);
}

TEST_CASE("amsgrad: decay is part of the gradient, or decoupled from the moments") {
  trial t(ds::amsgrad{.lr = 0.5, .weight_decay = 0.25, .decoupled = true}, {8});
  CHECK(t.step({0})[0] == near(7));
  CHECK(t.state(0)[0] == 0);
  trial u(ds::amsgrad{.lr = 0.5, .eps = 0, .weight_decay = 0.25}, {8});
  CHECK(u.step({0})[0] == near(7.5));
  CHECK(rests(ds::amsgrad{}));
}

TEST_CASE("amsgrad: bad input") {
  CHECK_THROWS_WITH(ds::amsgrad{.beta2 = 1.5}.check(), "amsgrad: beta2 must be in [0, 1), is 1.5");
  CHECK_NOTHROW(ds::amsgrad{}.check());
}

// ---- heavy_ball ----------------------------------------------------------------------------------------------------

namespace {

/// The heavy ball in double, as its papers have it: Polyak's step from the last two points as a velocity (Sutskever et
/// al. 2013, eq. 1-2; Nesterov's in the shifted variable, eq. 7-8), and Goyal's correction (2017, section 3). It shares
/// nothing with the rule but its fields.
struct plain_ball {
  ds::heavy_ball set;
  double x, v = 0, last = 0;

  void step(double lr, double gradient) {
    double const slope = gradient + set.weight_decay * x;
    double const scale = set.correction && last != 0 ? lr / last : 1;
    double const moved = set.momentum * scale * v - lr * slope;  // v is minus the rule's buffer
    x += set.nesterov ? set.momentum * moved - lr * slope : moved;
    v = moved;
    last = lr;
  }
};

/// Rates that change in every step, by factors up to 8.
double changing(int t) { return 0.01 * std::ldexp(1 + 0.1 * (t % 7), t % 4); }

/// How far the rule is, after 100 steps with such rates, from what next(i, lr, gradient) gives, at most.
template <class Rule, class Next> double distance(Rule const& rule, Next next, bool constant = false) {
  std::vector<double> p, g(5);
  for (std::size_t i = 0; i < g.size(); ++i) p.push_back(start(0, i));
  ds::parameters<double> list;
  list.add("p", p.data(), g.data(), p.size());
  ds::optimizer opt{list, rule};
  double most = 0;
  for (int t = 1; t <= 100; ++t) {
    double const lr = constant ? 0.01 : changing(t);
    opt.group(0).lr = lr;
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = gradient(0, i, t);
    opt.step();
    for (std::size_t i = 0; i < g.size(); ++i) most = std::max(most, std::abs(p[i] - next(i, lr, g[i])));
  }
  return most;
}

template <class Rule> double from_plain(Rule const& rule, ds::heavy_ball const& as, bool constant = false) {
  std::vector<plain_ball> balls;
  for (std::size_t i = 0; i < 5; ++i) balls.push_back({as, start(0, i)});
  return distance(
      rule,
      [&](std::size_t i, double lr, double gradient) {
        balls[i].step(lr, gradient);
        return balls[i].x;
      },
      constant);
}

}  // namespace

TEST_CASE("heavy_ball: lr is inside the buffer, so a new one does not touch what is there") {
  std::vector<double> p{8}, g{1};
  ds::parameters<double> list;
  list.add("p", p.data(), g.data(), 1);
  ds::optimizer opt{list, ds::heavy_ball{.lr = 1, .momentum = 0.5}};
  opt.step();
  CHECK(p[0] == 7);  // b = 1
  opt.group(0).lr = 0.25;
  opt.step();
  CHECK(p[0] == 6.25);  // b = 0.5 + 0.25; outside it would be 0.25 (0.5 + 1)
  CHECK(opt.state("p", "b")[0] == 0.75);
}

TEST_CASE("heavy_ball: correction scales the buffer by the ratio of rates, and only where the rate changes") {
  std::vector<double> p{8}, g{1};
  ds::parameters<double> list;
  list.add("p", p.data(), g.data(), 1);
  ds::optimizer opt{list, ds::heavy_ball{.lr = 1, .momentum = 0.5, .correction = true}};
  opt.step();
  opt.group(0).lr = 0.25;
  opt.step();
  CHECK(opt.state("p", "b")[0] == 0.375);  // 0.5 / 4 + 0.25
  opt.step();
  CHECK(opt.state("p", "b")[0] == 0.4375);  // 0.1875 + 0.25
}

TEST_CASE("heavy_ball: after a step with lr = 0 the correction starts anew") {
  std::vector<double> p{8}, g{1};
  ds::parameters<double> list;
  list.add("p", p.data(), g.data(), 1);
  ds::optimizer opt{list, ds::heavy_ball{.lr = 1, .momentum = 0.5, .correction = true}};
  opt.step();
  opt.group(0).lr = 0;
  opt.step();
  CHECK(p[0] == 7);
  CHECK(opt.state("p", "b")[0] == 0);
  opt.group(0).lr = 0.5;
  opt.step();
  CHECK(p[0] == 6.5);
}

TEST_CASE("heavy_ball: follows the papers' steps with changing rates") {
  for (bool nesterov : {false, true})
    for (bool correction : {false, true}) {
      ds::heavy_ball const rule{
          .momentum = 0.8, .weight_decay = 0.05, .nesterov = nesterov, .correction = correction};
      CHECK(from_plain(rule, rule) <= 1e-13);
      ds::heavy_ball other = rule;
      other.correction = !correction;
      CHECK(from_plain(rule, other) >= 1e-2);
      other = rule;
      other.nesterov = !nesterov;
      CHECK(from_plain(rule, other) >= 1e-3);
    }
}

TEST_CASE("heavy_ball: with correction it is sgd under any rates, and without it under a constant one") {
  for (bool nesterov : {false, true}) {
    ds::sgd const outside{.momentum = 0.8, .weight_decay = 0.05, .nesterov = nesterov};
    ds::heavy_ball inside{.momentum = 0.8, .weight_decay = 0.05, .nesterov = nesterov, .correction = true};
    CHECK(from_plain(outside, inside) <= 1e-13);
    inside.correction = false;
    CHECK(from_plain(outside, inside) >= 1e-2);
    CHECK(from_plain(outside, inside, true) <= 1e-13);
    std::vector<ds::sgd::state<double>> s(5);
    std::vector<double> p;
    for (std::size_t i = 0; i < 5; ++i) p.push_back(start(0, i));
    inside.correction = true;
    int calls = 0;
    auto const sgd_step = [&](std::size_t i, double lr, double gradient) {
      ds::sgd rule = outside;
      rule.lr = lr;
      return p[i] = ds::sgd::update(p[i], gradient, s[i], rule.at(1 + calls++ / 5));
    };
    CHECK(distance(inside, sgd_step) <= 1e-13);
  }
}

TEST_CASE("heavy_ball: Nesterov's literal look-ahead has w = p + mu b, also when lr changes") {
  // f(w) = (w - 1)^4 / 4
  auto const slope = [](double w) { return (w - 1) * (w - 1) * (w - 1); };
  double const mu = 0.75;
  std::vector<double> p{3}, g{0};
  ds::parameters<double> list;
  list.add("p", p.data(), g.data(), 1);
  ds::optimizer opt{list, ds::heavy_ball{.momentum = mu, .nesterov = true}};
  double w = 3, b = 0;
  for (int t = 1; t <= 30; ++t) {
    double const lr = 0.01 + 0.005 * (t % 3);
    opt.group(0).lr = lr;
    g[0] = slope(p[0]);
    opt.step();
    b = mu * b + lr * slope(w - mu * b);
    w = w - b;
    CHECK(opt.state("p", "b")[0] == doctest::Approx(b).epsilon(1e-12));
    CHECK(p[0] + mu * opt.state("p", "b")[0] == doctest::Approx(w).epsilon(1e-13));
  }
  CHECK(std::abs(w - p[0]) > 1e-3);
}

TEST_CASE("heavy_ball: without momentum there is no buffer; decay is part of the gradient") {
  trial t(ds::heavy_ball{.lr = 0.5, .momentum = 0, .weight_decay = 0.25}, {8});
  CHECK(t.step({2}) == std::vector{6.0});
  CHECK(t.state(0).empty());
}

TEST_CASE("heavy_ball: bad input") {
  CHECK_THROWS_WITH(ds::heavy_ball{.lr = -1}.check(), "heavy_ball: lr must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::heavy_ball{.momentum = -1}.check(),
                    "heavy_ball: momentum must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::heavy_ball{.weight_decay = -1}.check(),
                    "heavy_ball: weight_decay must be finite and at least 0, is -1");
  ds::heavy_ball const still{.momentum = 0, .nesterov = true};
  CHECK_THROWS_WITH(still.check(), "heavy_ball: momentum must be above 0 with nesterov, is 0");
  CHECK_NOTHROW(ds::heavy_ball{}.check());
}
