// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/rules/acprop.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/dadapt_adamw.hpp>
#include <descent/rules/dowg.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/schedule_free_adamw.hpp>
#include <descent/rules/schedule_free_sgd.hpp>
#include <descent/storage.hpp>

#include <doctest/doctest.h>

#include "support/trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }
constexpr double tiny = 1e-300;
}  // namespace

TEST_CASE("schedule_free_sgd: the first step is plain, and x is where it leads") {
  trial t(ds::schedule_free_sgd{.lr = 0.5, .beta1 = 0.75}, {1});
  CHECK(t.step({2}) == std::vector{0.0});
  CHECK(t.state(0) == std::vector{0.0});
  CHECK(ds::schedule_free_sgd{.beta1 = 0.75}.averaged(0.0, ds::schedule_free_sgd::state<double>{0.0}) == 0);
}

TEST_CASE("schedule_free_sgd: x is the mean of z, and y between them") {
  trial t(ds::schedule_free_sgd{.lr = 0.5, .beta1 = 0.75}, {1});
  t.step({2});                               // z = 0
  CHECK(t.step({4}) == std::vector{-1.25});  // z = -2, x = -1, y = 0.75 x + 0.25 z
  CHECK(t.state(0) == std::vector{-2.0});
  CHECK(ds::schedule_free_sgd{.beta1 = 0.75}.averaged(-1.25, ds::schedule_free_sgd::state<double>{-2.0}) == -1);
  CHECK(t.step({-4})[0] == near(-0.75 * 2 / 3));  // z = 0, x = -2/3
}

TEST_CASE("schedule_free_sgd: decay is of y, where the gradient is taken") {
  trial t(ds::schedule_free_sgd{.lr = 0.5, .beta1 = 0.75, .weight_decay = 0.5}, {4});
  CHECK(t.step({0}) == std::vector{3.0});
  t.step({2});  // g = 3.5: z = 1.25, x = 2.125, y = 1.90625
  CHECK(t.state(0) == std::vector{1.25});
  t.step({0});
  CHECK(t.state(0) == std::vector{1.25 - 0.25 * 1.90625});
}

TEST_CASE("schedule-free rules weight z with a power of the largest lr so far") {
  ds::schedule_free_sgd rule{.lr = 0, .power = 2};
  ds::schedule_free_sgd::memory m;
  CHECK(rule.at(1, m).c == 0);  // 0/0: nothing is averaged yet
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

TEST_CASE("schedule_free_adamw: the first step moves by lr, and there is no first moment to go on with") {
  trial t(ds::schedule_free_adamw{.lr = 0.25, .eps = tiny}, {1, 1});
  auto const p = t.step({1e-3, -1e3});
  CHECK(p[0] == near(0.75));
  CHECK(p[1] == near(1.25));
  auto const before = p;
  CHECK(t.step({0, 0}) == before);
}

TEST_CASE("schedule_free_adamw: v is unbiased, and decay outside it") {
  trial t(ds::schedule_free_adamw{.lr = 0.5, .beta1 = 0.5, .beta2 = 0.75, .eps = 1, .weight_decay = 0.5}, {8});
  CHECK(t.step({3})[0] == near(8 - 0.5 * (3.0 / 4 + 4)));
  CHECK(t.state(1)[0] == near(9.0 / 4));
  double const y = 8 - 0.5 * 4.75, v = (0.75 * 9 / 4 + 4) / (1 - 0.75 * 0.75);  // and z = y
  double const z = y - 0.5 * (4 / (std::sqrt(v) + 1) + 0.5 * y), x = (y + z) / 2;
  CHECK(t.step({4})[0] == near((x + z) / 2));
  CHECK(t.state(0)[0] == near(z));
}

TEST_CASE("dowg: the first step has length lr reps") {
  trial t(ds::dowg{.lr = 2, .reps = 0.125, .eps = tiny}, {3, 4});
  auto const p = t.step({6, 8});
  CHECK(p[0] == near(3 - 0.25 * 0.6));
  CHECK(p[1] == near(4 - 0.25 * 0.8));
}

TEST_CASE("dowg: distances weight the gradients, the largest so far each") {
  trial t(ds::dowg{.reps = 1, .eps = tiny}, {7});
  CHECK(t.step({3})[0] == near(6));    // G = 9
  CHECK(t.step({4})[0] == near(5.2));  // G = 25
  double const rr = 1.8 * 1.8, G = 25 + rr * 144, p = 5.2 - rr * 12 / std::sqrt(G);
  CHECK(t.step({12})[0] == near(p));
  double const dd = (7 - p) * (7 - p), H = G + dd * 400, q = p + dd * 20 / std::sqrt(H);
  CHECK(t.step({-20})[0] == near(q));  // nearer to the start
  CHECK(t.step({1})[0] == near(q - dd / std::sqrt(H + dd)));
}

TEST_CASE("dowg: eps is beside the root, and decay part of the gradient") {
  trial t(ds::dowg{.reps = 0.5, .eps = 3, .weight_decay = 0.5}, {8});
  CHECK(t.step({0})[0] == near(8 - 0.25 * 4 / (2 + 3)));
}

TEST_CASE("dowg: distance and gradients are those of all tensors together") {
  std::vector<double> a{3}, b{4}, ga{6}, gb{8};
  ds::parameters<double> list;
  list.add("a", a.data(), ga.data(), 1);
  list.add("b", b.data(), gb.data(), 1, ds::group{1});
  ds::optimizer opt{list, ds::dowg{.reps = 0.125, .eps = tiny}};
  opt.step();
  CHECK(a[0] == near(3 - 0.125 * 0.6));
  CHECK(b[0] == near(4 - 0.125 * 0.8));
}

TEST_CASE("prodigy, dadapt_adamw: the first step moves by lr d0, against the sign of the gradient") {
  trial a(ds::prodigy{.lr = 0.5, .eps = tiny, .d0 = 0.25}, {1, 1});
  CHECK(a.step({1e-3, -1e3})[0] == near(0.875));
  CHECK(a.step({0, 0})[1] > 1.125);  // momentum
  trial b(ds::dadapt_adamw{.lr = 0.5, .eps = tiny, .d0 = 0.25}, {1, 1});
  CHECK(b.step({1e-3, -1e3})[0] == near(0.875));
  CHECK(b.step({0, 0})[1] > 1.125);
}

TEST_CASE("prodigy: a step has the old d as its rate and the new one beside eps") {
  trial t(ds::prodigy{.beta1 = 0, .beta2 = 0, .beta3 = 0.5, .eps = 0.5, .d0 = 1, .d_coef = 6}, {10});
  double p = 10 - 2 / (2 + 0.5);
  CHECK(t.step({2})[0] == near(p));  // r = 0, s = 2
  double r = 2 * (10 - p), s = 0.5 * 2 + 2, d = 6 * r / s;
  p -= 2 / (2 + 0.5 * d);
  CHECK(t.step({2})[0] == near(p));
  r = 0.5 * r + d * d * 2 * (10 - p), s = 0.5 * s + d * d * 2;
  p -= d * 2 * d / (2 * d + 0.5 * 6 * r / s);
  CHECK(t.step({2})[0] == near(p));
  CHECK(t.state(2)[0] == near(s));
}

TEST_CASE("prodigy: lr is in the numerator, and in the denominator unless the warm-up is safeguarded") {
  ds::prodigy rule{.lr = 0.5, .beta1 = 0, .beta2 = 0, .beta3 = 0.5, .d0 = 0.25};
  CHECK(rule.at(1, {}).a3 == near(0.125));
  rule.safeguard_warmup = true;
  CHECK(rule.at(1, {}).a3 == near(0.25));
  ds::prodigy::memory m;
  rule.at(1, {.gd = 8, .s = 0.5}, m);
  CHECK(m.r == near(1));
  CHECK(m.d == near(2));
}

TEST_CASE("prodigy: d does not shrink, and beta3 is sqrt(beta2) unless given") {
  ds::prodigy const rule{.beta2 = 0.25, .d0 = 0.25};
  CHECK(rule.at(1, {}).b3 == 0.5);
  ds::prodigy::memory m{.d = 2, .r = -1};
  rule.at(5, {.gd = -1, .s = 1}, m);
  CHECK(m.d == 2);
  rule.at(6, {.gd = 0, .s = 0}, m);
  CHECK(m.d == 2);
}

TEST_CASE("dadapt_adamw: a step has the old d, the next one the new") {
  ds::dadapt_adamw const rule{.beta1 = 0.5, .beta2 = 0.25, .weight_decay = 0.5, .d0 = 1};
  ds::dadapt_adamw::memory m;
  double const e = std::sqrt(0.75) / 0.5;
  auto const first = rule.at(1, {.gs = 2, .s = 0.25}, m);
  CHECK(first.a1 == near(0.5 * e));
  CHECK(first.wd == near(0.5 * e));
  CHECK(m.r == near(0.5 * e * 2));
  CHECK(m.d == near(m.r / (0.5 * 0.25)));
  CHECK(rule.at(2, m).a == near(0.5 * m.d * std::sqrt(15.0 / 16) / 0.75));
  double const d = m.d;
  rule.at(2, {.gs = -100, .s = 1}, m);
  CHECK(m.d == d);
}

TEST_CASE("dadapt_adamw: the numerator has s and v as they were before the step") {
  trial t(ds::dadapt_adamw{.beta1 = 0, .beta2 = 0.25, .eps = 1, .d0 = 1}, {10});
  double const e = std::sqrt(0.75);
  t.step({2});  // r = 0, m = 2 e, v = 3, s = e
  CHECK(t.state(2)[0] == near(e));
  double const f = std::sqrt(15.0 / 16), r = 0.5 * f * 6 * e / (std::sqrt(3) + 1), s = 0.5 * e + 0.5 * f * 6;
  t.step({6});
  CHECK(t.state(2)[0] == near(s));
  double const d = std::max(1.0, r / (0.5 * s));
  CHECK(d == 1);
  t.step({30});
  double const q = 0.5 * r + 0.5 * std::sqrt(63.0 / 64) * 30 * s / (std::sqrt(0.75 + 27) + 1);
  double const u = 0.5 * s + 0.5 * std::sqrt(63.0 / 64) * 30, grown = q / (0.5 * u);
  CHECK(grown > 1);
  t.step({0});  // e has the new d, but g is 0
  t.step({1});
  CHECK(t.state(0)[0] == near(grown * std::sqrt(1 - std::pow(0.25, 5))));
}

TEST_CASE("prodigy, dadapt_adamw: gradients that were all zero leave values and estimate as they are") {
  trial a(ds::prodigy{}, {1, 0});
  a.step({0, 0});
  CHECK(a.step({0, 0}) == std::vector{1.0, 0.0});
  CHECK(a.step({1, 0})[0] < 1);
  trial b(ds::dadapt_adamw{}, {1, 0});
  b.step({0, 0});
  CHECK(b.step({0, 0}) == std::vector{1.0, 0.0});
  CHECK(b.step({1, 0})[0] < 1);
}

TEST_CASE("madgrad: dual averaging over the cube root, later gradients weighing more") {
  trial t(ds::madgrad{.lr = 0.125, .momentum = 0, .eps = tiny}, {1});
  CHECK(t.step({8})[0] == near(0.5));  // s = 1, v = 8
  double const l = 0.125 * std::sqrt(2);
  CHECK(t.step({-4})[0] == near(1 - (1 - 4 * l) / std::cbrt(8 + 16 * l)));
}

TEST_CASE("madgrad: momentum is between iterates, so that the value goes on without lr") {
  trial t(ds::madgrad{.lr = 0.125, .momentum = 0.75, .eps = tiny}, {1});
  CHECK(t.step({8})[0] == near(1 - 0.25 * 0.5));
  CHECK(t.step({0})[0] == near(0.875 - 0.25 * 0.375));  // towards 0.5
}

TEST_CASE("madgrad: eps is added to lr and to the root, but a step at lr = 0 adds nothing") {
  trial t(ds::madgrad{.lr = 0.5, .momentum = 0, .eps = 0.25, .weight_decay = 1}, {1});
  CHECK(t.step({1})[0] == near(1 - 1.5 / (std::cbrt(3) + 0.25)));  // g = 2
  CHECK(t.state(0)[0] == near(1.5));
  trial still(ds::madgrad{.lr = 0, .eps = 0.25}, {1});
  CHECK(still.step({1}) == std::vector{1.0});
  CHECK(still.state(0) == std::vector{0.0});
}

TEST_CASE("cocob: the first step has length 1 / alpha, and what is won is bet again") {
  trial t(ds::cocob{.alpha = 4}, {0});
  CHECK(t.step({-1}) == std::vector{0.25});
  CHECK(t.step({-1}) == std::vector{0.625});  // R = 0.25, C / 4 = 0.5
  CHECK(t.step({2}) == std::vector{0.0});     // C = 0
  CHECK(t.state(2) == std::vector{0.0});      // R is not below 0
}

TEST_CASE("cocob: beyond alpha gradients the share is of all of them") {
  trial t(ds::cocob{.alpha = 2}, {1});
  t.step({-1});  // p - p0 = 0.5
  t.step({-1});  // R = 0.5, 2 / 3 (1 + R) = 1
  CHECK(t.step({-1})[0] == near(1 + 3.0 / 4 * (1 + 1.5)));
}

TEST_CASE("cocob: the scale of gradients, and so lr, does not matter") {
  trial a(ds::cocob{}, {1}), b(ds::cocob{}, {1}), c(ds::cocob{.lr = 0.125}, {1});
  for (double g : {0.5, -0.25, 3.0}) {
    auto const p = a.step({g});
    CHECK(b.step({1024 * g}) == p);
    CHECK(c.step({g}) == p);
  }
}

TEST_CASE("cocob: eps is the least scale, and decay part of the gradient") {
  trial t(ds::cocob{.lr = 0.5, .alpha = 4, .eps = 0.5, .weight_decay = 0.25}, {-4, 1});
  auto const p = t.step({0.5, -0.25});  // g = -0.25, 0
  CHECK(p == std::vector{-4 + 0.125, 1.0});
  CHECK(t.state(0) == std::vector{0.25, 0.0});
}

TEST_CASE("acprop: the first step is by the gradient") {
  trial t(ds::acprop{.lr = 0.5, .eps = 1}, {1});
  CHECK(t.step({0.5}) == std::vector{0.875});
}

TEST_CASE("acprop: a step divides by what earlier gradients differed from the momentum before them") {
  trial t(ds::acprop{.lr = 0.5, .beta1 = 0.5, .beta2 = 0.75, .eps = 0, .eps_root = 0}, {0});
  CHECK(t.step({4}) == std::vector{-2.0});  // m = 2, v = 4: 16 unbiased
  CHECK(t.step({8}) == std::vector{-3.0});  // v = 3 + 36 / 4
  CHECK(t.state(1) == std::vector{12.0});
  CHECK(t.step({1})[0] == near(-3 - 0.5 / std::sqrt(12 / (1 - 0.75 * 0.75))));
}

TEST_CASE("acprop: eps_root adds up in the state, and decay is outside") {
  trial t(ds::acprop{.lr = 0.5, .beta2 = 0.75, .eps_root = 0.125, .weight_decay = 0.25}, {8});
  CHECK(t.step({0}) == std::vector{7.0});
  t.step({0});
  CHECK(t.state(1) == std::vector{0.125 * 1.75});
}

TEST_CASE("rules without a rate or a schedule to tune say what is out of range") {
  CHECK_THROWS_WITH(ds::schedule_free_sgd{.beta1 = 0}.check(), "schedule_free_sgd: beta1 must be in (0, 1), is 0");
  CHECK_THROWS_WITH(ds::schedule_free_sgd{.beta1 = 1}.check(), "schedule_free_sgd: beta1 must be in (0, 1), is 1");
  CHECK_THROWS_WITH(ds::schedule_free_sgd{.power = -1}.check(),
                    "schedule_free_sgd: power must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::schedule_free_adamw{.beta1 = 0}.check(), "schedule_free_adamw: beta1 must be in (0, 1), is 0");
  CHECK_THROWS_WITH(ds::schedule_free_adamw{.beta2 = 1}.check(), "schedule_free_adamw: beta2 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::dowg{.eps = 0}.check(), "dowg: eps must be finite and above 0, is 0");
  CHECK_THROWS_WITH(ds::dowg{.reps = -1}.check(), "dowg: reps must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::prodigy{.d0 = 0}.check(), "prodigy: d0 must be finite and above 0, is 0");
  CHECK_THROWS_WITH(ds::prodigy{.beta3 = 1}.check(), "prodigy: beta3 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::prodigy{.eps = 0}.check(), "prodigy: eps must be finite and above 0, is 0");
  CHECK_THROWS_WITH(ds::dadapt_adamw{.d0 = -1}.check(), "dadapt_adamw: d0 must be finite and above 0, is -1");
  CHECK_THROWS_WITH(ds::dadapt_adamw{.eps = 0}.check(), "dadapt_adamw: eps must be finite and above 0, is 0");
  CHECK_THROWS_WITH(ds::madgrad{.momentum = 1}.check(), "madgrad: momentum must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::madgrad{.eps = 0}.check(), "madgrad: eps must be finite and above 0, is 0");
  CHECK_THROWS_WITH(ds::cocob{.alpha = -1}.check(), "cocob: alpha must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::cocob{.eps = 0}.check(), "cocob: eps must be finite and above 0, is 0");
  CHECK_THROWS_WITH(ds::acprop{.eps_root = -1}.check(), "acprop: eps_root must be finite and at least 0, is -1");
}

TEST_CASE("swap_average evaluates at what the rule averages, and puts the values back to the bit") {
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
