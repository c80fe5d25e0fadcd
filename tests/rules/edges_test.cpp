// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// What recorded values (reference_*_test.cpp) and formulas (rules/formulas_test.cpp) do not reach: zeros, sums and
// norms that vanish, caps, rates that change or are zero, state that is not kept, and settings that are refused.

#include <descent/optimizer.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/acprop.hpp>
#include <descent/rules/adabelief.hpp>
#include <descent/rules/adabound.hpp>
#include <descent/rules/adadelta.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamax.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/ademamix.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/amsgrad.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/dadapt_adamw.hpp>
#include <descent/rules/dowg.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/laprop.hpp>
#include <descent/rules/larc.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/optimistic.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/padam.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/qhadam.hpp>
#include <descent/rules/qhm.hpp>
#include <descent/rules/radam.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/rprop.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/schedule_free_sgd.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>
#include <descent/rules/sophia.hpp>
#include <descent/rules/yellowfin.hpp>
#include <descent/rules/yogi.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>

#include <doctest/doctest.h>

#include "support/larger.hpp"
#include "support/problem.hpp"
#include "support/trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }
constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();
}  // namespace

TEST_CASE("rules of signs: every element moves by lr, however small or large its gradient, or not where that is 0") {
  auto const moves = [](auto const& rule) {
    trial t(rule, {1, 1, 1, 1});
    CHECK(t.step({1e-20, -1e20, 0, -0.0}) == std::vector{0.75, 1.25, 1.0, 1.0});
  };
  moves(ds::signsgd{.lr = 0.25});
  moves(ds::signum{.lr = 0.25});
  moves(ds::lion{.lr = 0.25});
}

TEST_CASE("rmsprop: a variance that rounding made negative counts as 0") {
  ds::rmsprop const rule{.lr = 1, .alpha = 0.5, .eps = 0.5, .centered = true};
  auto const k = rule.at(1);
  // v = 0.5 0.25 + 0.5 g^2 and g_ = 0.5 1 + 0.5 g with g = 1: v - g_^2 < 0
  ds::rmsprop::state<double> s{.v = 0.25, .g_ = 1, .b = 0};
  CHECK(ds::rmsprop::update(0.0, 1.0, s, k) == near(-1 / 0.5));
}

TEST_CASE("squares that overflow: no infinity is multiplied by zero or taken from another") {
  auto const after = [](auto const& rule) {
    trial t(rule, {1});
    for (int i = 0; i < 3; ++i) t.step({1e200});
    return t.step({1})[0];
  };
  CHECK(after(ds::rmsprop{.centered = true}) == 1);
  CHECK(after(ds::qhadam{.nu1 = 0, .nu2 = 0, .eps = 0x1p-126}) == near(1 - 1e-3));
  CHECK(after(ds::laprop{}) == 1);
  CHECK(after(ds::madgrad{.momentum = 0}) == 1);
  CHECK(after(ds::yogi{}) == 1);
  CHECK(std::isfinite(after(ds::radam{})));  // it first descends along m^
}

TEST_CASE("lars, larc: a group without `adapt` takes lr itself") {
  std::vector<double> const start{3, -4}, gradient{0.5, 2};
  trial lars(ds::lars{.lr = 0.25, .weight_decay = 0.125, .adapt = false}, start);
  trial larc(ds::larc<ds::heavy_ball>{.lr = 0.25, .weight_decay = 0.125, .adapt = false}, start);
  trial ball(ds::heavy_ball{.lr = 0.25, .weight_decay = 0.125}, start);
  for (int i = 0; i < 3; ++i) {
    std::vector<double> const expected = ball.step(gradient);
    CHECK(lars.step(gradient) == expected);
    CHECK(larc.step(gradient) == expected);
  }
}

TEST_CASE("adagrad: 0 where the sum is 0, but NaN where the gradient is NaN") {
  for (bool inside : {false, true}) {
    CHECK(trial(ds::adagrad{.eps = 0, .eps_inside = inside}, {1}).step({0}) == std::vector{1.0});
    CHECK(std::isnan(trial(ds::adagrad{.eps_inside = inside}, {1}).step({not_a_number})[0]));
  }
}

TEST_CASE("yogi: v moves by (1 - b2) g^2 towards g^2, however far that is") {
  trial t(ds::yogi{.beta1 = 0.5, .beta2 = 0.75, .initial = 0}, {1});
  t.step({2});
  CHECK(t.state(1) == std::vector{1.0});
  t.step({-1});  // v = g^2
  CHECK(t.state(1) == std::vector{1.0});
  t.step({0.5});
  CHECK(t.state(1) == std::vector{0.9375});
  t.step({64});  // Adam would add 0.25 (4096 - v)
  CHECK(t.state(1) == std::vector{0.9375 + 1024});
}

TEST_CASE("adabelief: at its small default eps a value without gradients stays") {
  trial t(ds::adabelief{}, {1});
  for (int i = 0; i < 3; ++i) CHECK(t.step({0}) == std::vector{1.0});
}

TEST_CASE("adopt: eps is the least divisor") {
  trial t(ds::adopt{.lr = 0.5, .beta1 = 0, .eps = 0.25, .clip = false}, {8});
  t.step({0});
  CHECK(t.step({1}) == std::vector{8 - 0.5 * 4});
}

TEST_CASE("laprop: at beta2 = 0 m averages signs, so no step is longer than lr, and none is where no gradient was") {
  trial t(ds::laprop{.lr = 0.25, .beta1 = 0.5, .beta2 = 0}, {1, 1, 1});
  auto const first = t.step({8, -1e20, 0});
  CHECK(first[0] == near(0.75));
  CHECK(first[1] == 1.25);
  auto const second = t.step({-1e9, -1, 0});  // m = -1/4 and -3/4, m^ = -1/3 and -1
  CHECK(second[0] == near(0.75 + 0.25 / 3));
  CHECK(second[1] == near(1.5));
  CHECK(second[2] == 1);
}

TEST_CASE("optimistic: finds the saddle of x y, which plain descent and ascent leave") {
  auto const distance = [](double beta) {
    trial t(ds::optimistic{.lr = 0.25, .beta = beta}, {1, 1});
    std::vector<double> p{1, 1};
    for (int i = 0; i < 200; ++i) p = t.step({p[1], -p[0]});
    return std::hypot(p[0], p[1]);
  };
  CHECK(distance(1) < 1e-2);
  CHECK(distance(0) > 100);
}

TEST_CASE("fromage: a tensor shrinks without a gradient") {
  for (double least : {0.0, 1e-6}) {
    trial t(ds::fromage{.lr = 0.75, .min_norm = least}, {5});
    CHECK(t.step({0})[0] == near(4));
  }
}

TEST_CASE("fromage: a tensor of zeros counts as min_norm, or has ratio 1") {
  trial t(ds::fromage{.lr = 0.75, .min_norm = 0.5}, {0, 0});
  CHECK(t.step({3, 4})[0] == near(-0.75 * 0.1 * 3 * 0.8));
  trial plain(ds::fromage{.lr = 0.75, .min_norm = 0}, {0, 0});
  CHECK(plain.step({3, 4})[0] == near(-0.75 * 3 * 0.8));
  trial flat(ds::fromage{.lr = 0.75, .min_norm = 0.5}, {2});
  CHECK(flat.step({0.25})[0] == near((2 - 0.75 * (2 / 0.5) * 0.25) * 0.8));
}

TEST_CASE("novograd: each tensor has its v, from its own first step on") {
  std::vector<double> a{1}, b{1}, ga{4}, gb{2};
  ds::parameters<double> list;
  list.add("a", a.data(), ga.data(), 1);
  list.add("b", b.data(), gb.data(), 1, ds::group{1});
  ds::optimizer opt{list, ds::novograd{.lr = 0.25, .beta1 = 0, .eps = 1}};
  opt.freeze(1);
  opt.step();
  CHECK(a[0] == near(1 - 0.25 * 4 / 5));
  CHECK(b[0] == 1);
  opt.freeze(1, false);
  opt.step();
  CHECK(a[0] == near(1 - 0.25 * 8 / 5));
  CHECK(b[0] == near(1 - 0.25 * 2 / 3));
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

TEST_CASE("schedule-free rules weight z with a power of the largest lr so far") {
  ds::schedule_free_sgd rule{.lr = 0, .power = 2};
  ds::schedule_free_sgd::memory m;
  CHECK(rule.at(1, m).c == 0);  // 0/0: there is no average yet
  rule.lr = 1;
  CHECK(rule.at(2, m).c == 1);
  rule.lr = 2;
  CHECK(rule.at(3, m).c == near(4.0 / 5));
  rule.lr = 1;  // counts as 2
  CHECK(rule.at(4, m).c == near(4.0 / 9));

  ds::schedule_free_adamw cubed{.lr = 1, .power = 3};
  ds::schedule_free_adamw::memory n;
  cubed.at(1, n);
  cubed.lr = 2;
  CHECK(cubed.at(2, n).c == near(8.0 / 9));
  cubed.lr = 1;  // counts as 2
  CHECK(cubed.at(3, n).c == near(8.0 / 17));
}

TEST_CASE("prodigy, dadapt_adamw: d does not shrink, and beta3 is sqrt(beta2) unless given") {
  ds::prodigy const rule{.beta2 = 0.25, .d0 = 0.25};
  CHECK(rule.at(1, {}).b3 == 0.5);
  ds::prodigy::memory m{.d = 2, .r = -1};
  rule.at(5, {.gd = -1, .s = 1}, m);
  CHECK(m.d == 2);
  rule.at(6, {.gd = 0, .s = 0}, m);
  CHECK(m.d == 2);
  ds::dadapt_adamw::memory n{.d = 2, .r = -1};
  ds::dadapt_adamw{}.at(5, {.gs = -100, .s = 1}, n);
  CHECK(n.d == 2);
}

TEST_CASE("prodigy, dadapt_adamw: gradients that were all zero leave values and estimate as they are") {
  auto const waits = [](auto const& rule) {
    trial t(rule, {1, 0});
    t.step({0, 0});
    CHECK(t.step({0, 0}) == std::vector{1.0, 0.0});
    CHECK(t.step({1, 0})[0] < 1);
  };
  waits(ds::prodigy{});
  waits(ds::dadapt_adamw{});
}

TEST_CASE("madgrad: a step at lr = 0 adds nothing to its sums") {
  trial still(ds::madgrad{.lr = 0, .eps = 0.25}, {1});
  CHECK(still.step({1}) == std::vector{1.0});
  CHECK(still.state(0) == std::vector{0.0});
}

TEST_CASE("cocob: the scale of gradients, and so lr, does not matter") {
  trial a(ds::cocob{}, {1}), b(ds::cocob{}, {1}), c(ds::cocob{.lr = 0.125}, {1});
  for (double g : {0.5, -0.25, 3.0}) {
    auto const p = a.step({g});
    CHECK(b.step({1024 * g}) == p);
    CHECK(c.step({g}) == p);
  }
}

namespace {

/// The heavy ball in double, as in its papers: Polyak's step from the last two points as a velocity (Sutskever et al.
/// 2013, eq. 1-2; Nesterov's in the shifted variable, eq. 7-8), and Goyal's correction (2017, section 3). It shares
/// only its fields with the rule.
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

/// Rates that change at every step, by factors of up to 8.
double changing(int t) { return 0.01 * std::ldexp(1 + 0.1 * (t % 7), t % 4); }

/// The largest distance of the rule from the papers' steps with the settings `as`, in 100 steps with such rates.
double from_plain(ds::heavy_ball const& rule, ds::heavy_ball const& as) {
  std::vector<double> p, g(5);
  std::vector<plain_ball> balls;
  for (std::size_t i = 0; i < g.size(); ++i) p.push_back(start(0, i)), balls.push_back({as, start(0, i)});
  ds::parameters<double> list;
  list.add("p", p.data(), g.data(), p.size());
  ds::optimizer opt{list, rule};
  double most = 0;
  for (int t = 1; t <= 100; ++t) {
    opt.group(0).lr = changing(t);
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = gradient(0, i, t);
    opt.step();
    for (std::size_t i = 0; i < g.size(); ++i) {
      balls[i].step(changing(t), g[i]);
      most = test::larger(most, std::abs(p[i] - balls[i].x));
    }
  }
  return most;
}

}  // namespace

TEST_CASE("heavy_ball: after a step with lr = 0 the correction starts again") {
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
      ds::heavy_ball const rule{.momentum = 0.8, .weight_decay = 0.05, .nesterov = nesterov, .correction = correction};
      CHECK(from_plain(rule, rule) <= 1e-13);
      ds::heavy_ball other = rule;
      other.correction = !correction;
      CHECK(from_plain(rule, other) >= 1e-2);
      other = rule;
      other.nesterov = !nesterov;
      CHECK(from_plain(rule, other) >= 1e-3);
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

TEST_CASE("state that the settings do not need is not kept") {
  auto const keeps = []<class Rule>(Rule const& rule, std::vector<int> const& wanted) {
    trial<Rule> t(rule, {1});
    for (std::size_t slot = 0; slot < wanted.size(); ++slot) CHECK(t.state(slot).size() == std::size_t(wanted[slot]));
  };
  keeps(ds::sgd{.dampening = 0.75}, {0});
  keeps(ds::sgd{.momentum = 0.5}, {1});
  keeps(ds::lars{.momentum = 0}, {0});
  keeps(ds::heavy_ball{.momentum = 0}, {0});
  keeps(ds::qhm{.nu = 0}, {0});
  keeps(ds::qhadam{.nu1 = 0, .nu2 = 0}, {0, 0});
  keeps(ds::padam{.amsgrad = false}, {1, 1, 0});
  keeps(ds::padam{}, {1, 1, 1});
  keeps(ds::rmsprop{}, {1, 0, 0});
  keeps(ds::rmsprop{.momentum = 0.5}, {1, 0, 1});
  keeps(ds::rmsprop{.centered = true}, {1, 1, 0});
  keeps(ds::larc<ds::sgd>{}, {0});
  keeps(ds::layerwise<ds::sgd>{.rule = {.momentum = 0.5}}, {1});
}

TEST_CASE("settings that are out of range or have no effect are refused with a message") {
  auto const refused = [](auto const& rule, char const* why) { CHECK_THROWS_WITH(ds::check_rule<double>(rule), why); };
  refused(ds::acprop{.eps_root = -1}, "acprop: eps_root must be finite and at least 0, is -1");
  refused(ds::adabelief{.beta1 = -1}, "adabelief: beta1 must be in [0, 1), is -1");
  refused(ds::adabelief{.eps_root = -1}, "adabelief: eps_root must be finite and at least 0, is -1");
  refused(ds::adabound{.gamma = 0}, "adabound: gamma must be finite and above 0, is 0");
  refused(ds::adadelta{.rho = 1}, "adadelta: rho must be in [0, 1), is 1");
  refused(ds::adadelta{.eps = 0}, "adadelta: eps must be finite and above 0, is 0");
  refused(ds::adadelta{.lr = infinity}, "adadelta: lr must be finite and at least 0, is inf");
  refused(ds::adadelta{.weight_decay = -1}, "adadelta: weight_decay must be finite and at least 0, is -1");
  refused(ds::adadelta{.decay_by_lr = false}, "adadelta: decay_by_lr must be on unless decoupled, is off");
  refused(ds::adagrad{.lr = -1}, "adagrad: lr must be finite and at least 0, is -1");
  refused(ds::adagrad{.lr_decay = -1}, "adagrad: lr_decay must be finite and at least 0, is -1");
  refused(ds::adagrad{.eps = -1}, "adagrad: eps must be finite and at least 0, is -1");
  refused(ds::adagrad{.weight_decay = -1}, "adagrad: weight_decay must be finite and at least 0, is -1");
  refused(ds::adagrad{.initial = -1}, "adagrad: initial must be finite and at least 0, is -1");
  refused(ds::adagrad{.decay_by_lr = false}, "adagrad: decay_by_lr must be on unless decoupled, is off");
  refused(ds::larc<ds::adam>{.rule = {.beta1 = 2}}, "adam: beta1 must be in [0, 1), is 2");
  refused(ds::adam{.eps_hat = true, .bias_correction = false},
          "adam: eps_hat must be off without bias_correction, is on");
  refused(ds::adamax{.beta1 = 1}, "adamax: beta1 must be in [0, 1), is 1");
  refused(ds::adamax{.eps = -1}, "adamax: eps must be finite and above 0, is -1");
  refused(ds::adamw{.eps_hat = true, .bias_correction = false},
          "adamw: eps_hat must be off without bias_correction, is on");
  refused(ds::adamw{.bias_correction = false, .decay_corrected = true},
          "adamw: decay_corrected must be off without bias_correction, is on");
  refused(ds::adan{.beta3 = 1}, "adan: beta3 must be in [0, 1), is 1");
  refused(ds::adan{.eps_root = -1}, "adan: eps_root must be finite and at least 0, is -1");
  refused(ds::adan{.eps = -1}, "adan: eps must be finite and above 0, is -1");
  refused(ds::ademamix{.beta3 = 1}, "ademamix: beta3 must be in [0, 1), is 1");
  refused(ds::ademamix{.alpha = -1}, "ademamix: alpha must be finite and at least 0, is -1");
  refused(ds::ademamix{.lr = -1}, "ademamix: lr must be finite and at least 0, is -1");
  refused(ds::adopt{.beta1 = 1}, "adopt: beta1 must be in [0, 1), is 1");
  refused(ds::adopt{.eps = 0}, "adopt: eps must be finite and above 0, is 0");
  refused(ds::amsgrad{.beta2 = 1.5}, "amsgrad: beta2 must be in [0, 1), is 1.5");
  refused(ds::amsgrad{.corrected_max = true, .bias_correction = false},
          "amsgrad: corrected_max must be off without bias_correction, is on");
  refused(ds::amsgrad{.bias_correction = false, .eps_hat = true},
          "amsgrad: eps_hat must be off without bias_correction, is on");
  refused(ds::amsgrad{.corrected_max = true, .eps_hat = true},
          "amsgrad: eps_hat must be off with corrected_max, is on");
  refused(ds::amsgrad{.decay_by_lr = false}, "amsgrad: decay_by_lr must be on unless decoupled, is off");
  refused(ds::asgd{.lr = -1}, "asgd: lr must be finite and at least 0, is -1");
  refused(ds::asgd{.lambd = -1}, "asgd: lambd must be finite and at least 0, is -1");
  refused(ds::asgd{.alpha = -1}, "asgd: alpha must be finite and at least 0, is -1");
  refused(ds::asgd{.t0 = -1}, "asgd: t0 must be at least 0, is -1");
  refused(ds::asgd{.weight_decay = -1}, "asgd: weight_decay must be finite and at least 0, is -1");
  refused(ds::cocob{.alpha = -1}, "cocob: alpha must be finite and at least 0, is -1");
  refused(ds::cocob{.eps = 0}, "cocob: eps must be finite and above 0, is 0");
  refused(ds::dadapt_adamw{.d0 = -1}, "dadapt_adamw: d0 must be finite and above 0, is -1");
  refused(ds::dadapt_adamw{.eps = 0}, "dadapt_adamw: eps must be finite and above 0, is 0");
  refused(ds::dowg{.eps = 0}, "dowg: eps must be finite and above 0, is 0");
  refused(ds::dowg{.reps = -1}, "dowg: reps must be finite and at least 0, is -1");
  refused(ds::fromage{.lr = -1}, "fromage: lr must be finite and at least 0, is -1");
  refused(ds::fromage{.min_norm = -1}, "fromage: min_norm must be finite and at least 0, is -1");
  refused(ds::heavy_ball{.lr = -1}, "heavy_ball: lr must be finite and at least 0, is -1");
  refused(ds::heavy_ball{.momentum = -1}, "heavy_ball: momentum must be finite and at least 0, is -1");
  refused(ds::heavy_ball{.weight_decay = -1}, "heavy_ball: weight_decay must be finite and at least 0, is -1");
  refused(ds::heavy_ball{.momentum = 0, .nesterov = true}, "heavy_ball: momentum must be above 0 with nesterov, is 0");
  refused(ds::heavy_ball{.momentum = 0, .correction = true},
          "heavy_ball: correction must be off without momentum, is on");
  refused(ds::lamb{.eps_hat = true, .correct_rate = true}, "lamb: eps_hat must be off with correct_rate, is on");
  refused(ds::lamb{.eps_root = -1}, "lamb: eps_root must be finite and at least 0, is -1");
  refused(ds::laprop{.lr = -1}, "laprop: lr must be finite and at least 0, is -1");
  refused(ds::laprop{.beta1 = 1}, "laprop: beta1 must be in [0, 1), is 1");
  refused(ds::laprop{.beta2 = -1}, "laprop: beta2 must be in [0, 1), is -1");
  refused(ds::laprop{.eps = 0}, "laprop: eps must be finite and above 0, is 0");
  refused(ds::laprop{.weight_decay = -1}, "laprop: weight_decay must be finite and at least 0, is -1");
  refused(ds::larc<ds::sgd>{.rule = {.lr = 0.3}}, "larc: rule.lr must be left unset, because larc has its own, is 0.3");
  refused(ds::larc<ds::adam>{.rule = {.weight_decay = 0.3}},
          "larc: rule.weight_decay must be left unset, because larc has its own, is 0.3");
  refused(ds::larc<ds::adam>{.trust = -1}, "larc: trust must be finite and at least 0, is -1");
  refused(ds::layerwise<ds::adam>{.rule = {.lr = 0.3}},
          "layerwise: rule.lr must be left unset, because layerwise has its own, is 0.3");
  refused(ds::layerwise<ds::sgd>{.min_ratio = 0.5, .max_ratio = 0.25},
          "layerwise: max_ratio must be at least min_ratio, is 0.25");
  refused(ds::lion{.at_zero = -2}, "lion: at_zero must be in [-1, 1], is -2");
  refused(ds::madgrad{.momentum = 1}, "madgrad: momentum must be in [0, 1), is 1");
  refused(ds::madgrad{.eps = 0}, "madgrad: eps must be finite and above 0, is 0");
  refused(ds::nadam{.momentum_decay = -1}, "nadam: momentum_decay must be at least 0, is -1");
  refused(ds::nadam{.beta2 = 1}, "nadam: beta2 must be in [0, 1), is 1");
  refused(ds::novograd{.beta2 = 1}, "novograd: beta2 must be in [0, 1), is 1");
  refused(ds::novograd{.eps = 0}, "novograd: eps must be finite and above 0, is 0");
  refused(ds::novograd{.undampened_first_step = true},
          "novograd: undampened_first_step must be off without averaging, is on");
  refused(ds::novograd{.raw_moment = true, .decoupled = true},
          "novograd: decoupled must be off with raw_moment, is on");
  refused(ds::optimistic{.lr = -1}, "optimistic: lr must be finite and at least 0, is -1");
  refused(ds::optimistic{.alpha = -1}, "optimistic: alpha must be finite and at least 0, is -1");
  refused(ds::optimistic{.beta = -1}, "optimistic: beta must be finite and at least 0, is -1");
  refused(ds::optimistic_adam{.lr = -1}, "optimistic_adam: lr must be finite and at least 0, is -1");
  refused(ds::optimistic_adam{.beta1 = 1}, "optimistic_adam: beta1 must be in [0, 1), is 1");
  refused(ds::optimistic_adam{.beta2 = 1}, "optimistic_adam: beta2 must be in [0, 1), is 1");
  refused(ds::optimistic_adam{.eps = -1}, "optimistic_adam: eps must be finite and above 0, is -1");
  refused(ds::optimistic_adam{.alpha = -1}, "optimistic_adam: alpha must be finite and at least 0, is -1");
  refused(ds::optimistic_adam{.beta = -1}, "optimistic_adam: beta must be finite and at least 0, is -1");
  refused(ds::padam{.partial = 1}, "padam: partial must be in [0, 1/2], is 1");
  refused(ds::padam{.eps = 0}, "padam: eps must be finite and above 0, is 0");
  refused(ds::prodigy{.d0 = 0}, "prodigy: d0 must be finite and above 0, is 0");
  refused(ds::prodigy{.beta3 = 1}, "prodigy: beta3 must be in [0, 1), is 1");
  refused(ds::prodigy{.eps = 0}, "prodigy: eps must be finite and above 0, is 0");
  refused(ds::qhadam{.nu2 = -1}, "qhadam: nu2 must be in [0, 1], is -1");
  refused(ds::qhm{.nu = 1.5}, "qhm: nu must be in [0, 1], is 1.5");
  refused(ds::qhm{.beta = 1}, "qhm: beta must be in [0, 1), is 1");
  refused(ds::radam{.beta1 = -0.5}, "radam: beta1 must be in [0, 1), is -0.5");
  refused(ds::rmsprop{.decay_by_lr = false}, "rmsprop: decay_by_lr must be on unless decoupled, is off");
  refused(ds::rmsprop{.initial = -1}, "rmsprop: initial must be finite and at least 0, is -1");
  refused(ds::rprop{.lr = -1}, "rprop: lr must be finite and at least 0, is -1");
  refused(ds::rprop{.eta_minus = 1}, "rprop: eta_minus must be in (0, 1), is 1");
  refused(ds::rprop{.eta_minus = 0}, "rprop: eta_minus must be in (0, 1), is 0");
  refused(ds::rprop{.eta_plus = 1}, "rprop: eta_plus must be finite and above 1, is 1");
  refused(ds::rprop{.min_step = -1}, "rprop: min_step must be finite and at least 0, is -1");
  refused(ds::rprop{.min_step = 2, .max_step = 1}, "rprop: max_step must be finite and at least min_step, is 1");
  refused(ds::schedule_free_adamw{.beta1 = 0}, "schedule_free_adamw: beta1 must be in (0, 1), is 0");
  refused(ds::schedule_free_adamw{.beta2 = 1}, "schedule_free_adamw: beta2 must be in [0, 1), is 1");
  refused(ds::schedule_free_sgd{.beta1 = 0}, "schedule_free_sgd: beta1 must be in (0, 1), is 0");
  refused(ds::schedule_free_sgd{.beta1 = 1}, "schedule_free_sgd: beta1 must be in (0, 1), is 1");
  refused(ds::schedule_free_sgd{.power = -1}, "schedule_free_sgd: power must be finite and at least 0, is -1");
  refused(ds::signsgd{.lr = -1}, "signsgd: lr must be finite and at least 0, is -1");
  refused(ds::signsgd{.weight_decay = -1}, "signsgd: weight_decay must be finite and at least 0, is -1");
  refused(ds::signum{.lr = -1}, "signum: lr must be finite and at least 0, is -1");
  refused(ds::signum{.beta = 1}, "signum: beta must be in [0, 1), is 1");
  refused(ds::signum{.weight_decay = -1}, "signum: weight_decay must be finite and at least 0, is -1");
  refused(ds::sophia{.eps = 0}, "sophia: eps must be finite and above 0, is 0");
  refused(ds::yellowfin{.eps = 0}, "yellowfin: eps must be finite and above 0, is 0");
  refused(ds::yellowfin{.beta = 1}, "yellowfin: beta must be in [0, 1), is 1");
  refused(ds::yogi{.beta2 = 1}, "yogi: beta2 must be in [0, 1), is 1");
  refused(ds::yogi{.initial = -1}, "yogi: initial must be in [0, 2^64], is -1");
  ds::check_rule<double>(ds::adam{.bias_correction = false});
  ds::check_rule<double>(ds::amsgrad{.decoupled = true, .decay_by_lr = false, .bias_correction = false});
  ds::check_rule<double>(ds::heavy_ball{.momentum = 0});
}

TEST_CASE("swap_average evaluates at what the rule averages, and restores the values bit for bit") {
  auto const holds = []<class Value, class Rule, class... Ps>(Value, Rule rule, auto const& average, Ps... policies) {
    std::vector<Value> p(21), g(21);
    for (std::size_t i = 0; i < 21; ++i) p[i] = ds::narrow<Value>(0.5 * double(i) - 4), g[i] = ds::narrow<Value>(1.);
    ds::parameters<Value> list;
    list.add("a", p.data(), g.data(), 13);
    list.add("b", p.data() + 13, g.data() + 13, 8, ds::group{1});
    ds::optimizer opt{list, rule, policies...};
    if constexpr (requires { opt.group(1).beta1; }) opt.group(1).beta1 = 0.5;
    for (int t = 0; t < 4; ++t) opt.step();
    auto const kept = p;
    opt.swap_average();
    CHECK_THROWS_AS(opt.step(), std::logic_error);
    for (std::size_t i = 0; i < 21; ++i) {
      bool const first = i < 13;
      std::string const name = first ? "a" : "b";
      std::size_t const j = first ? i : i - 13;
      double exact = ds::widen<double>(kept[i]);
      if constexpr (sizeof...(Ps) > 0) exact = opt.master(name)[j];
      double const x = average(opt.group(!first), exact, double(opt.state(name, 0)[j]));
      CHECK(ds::widen<double>(p[i]) == doctest::Approx(ds::widen<double>(ds::narrow<Value>(x))).epsilon(1e-6));
      CHECK(ds::widen<double>(p[i]) != ds::widen<double>(kept[i]));
    }
    opt.swap_average();
    CHECK(std::memcmp(p.data(), kept.data(), 21 * sizeof(Value)) == 0);
    opt.step();
  };
  auto const free = [](auto const& rule, double y, double z) { return (y - (1 - rule.beta1) * z) / rule.beta1; };
  holds(0.f, ds::schedule_free_sgd{.lr = 0.1}, free);
  holds(0.0, ds::schedule_free_adamw{.lr = 0.1}, free);
  holds(ds::bfloat16{}, ds::schedule_free_adamw{.lr = 0.5}, free, ds::master<float>{});
  holds(0.f, ds::asgd{.lr = 0.1, .t0 = 1}, [](auto const&, double, double ax) { return ax; });
}
