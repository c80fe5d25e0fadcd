// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/trial.hpp"

#include <descent/noise.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adabelief.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/ademamix.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/fromage.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/optimistic.hpp>
#include <descent/rules/optimistic_adam.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/signsgd.hpp>
#include <descent/rules/signum.hpp>
#include <descent/rules/yogi.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {
auto near(double x) { return doctest::Approx(x).epsilon(1e-14); }
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
}  // namespace

// ---- signSGD and Signum --------------------------------------------------------------------------------------------

TEST_CASE("signsgd: every element moves by lr against its gradient's sign, or not where that is 0") {
  trial t(ds::signsgd{.lr = 0.25}, {1, 1, 1, 1});
  CHECK(t.step({1e-20, -1e20, 0, -0.0}) == std::vector{0.75, 1.25, 1.0, 1.0});
}

TEST_CASE("signsgd: decay shrinks the value by lr wd") {
  trial t(ds::signsgd{.lr = 0.25, .weight_decay = 0.5}, {8});
  CHECK(t.step({0}) == std::vector{7.0});
}

TEST_CASE("signum: the momentum is a mean, and its sign the direction") {
  trial t(ds::signum{.lr = 0.25, .beta = 0.5}, {1});
  CHECK(t.step({4}) == std::vector{0.75});
  CHECK(t.state(0) == std::vector{2.0});  // not 4, a sum
  CHECK(t.step({-1}) == std::vector{0.5});  // m = 0.5: against the gradient's own sign
  CHECK(t.step({-0.5}) == std::vector{0.5});  // m = 0
  CHECK(t.step({-1}) == std::vector{0.75});
}

TEST_CASE("signum: decay shrinks the value by lr wd, and does not enter the momentum") {
  trial t(ds::signum{.lr = 0.25, .weight_decay = 0.5}, {8});
  CHECK(t.step({0}) == std::vector{7.0});
  CHECK(t.state(0) == std::vector{0.0});
}

TEST_CASE("signsgd, signum: bad input") {
  CHECK_THROWS_WITH(ds::signsgd{.lr = -1}.check(), "signsgd: lr must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::signsgd{.weight_decay = -1}.check(),
                    "signsgd: weight_decay must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::signum{.lr = -1}.check(), "signum: lr must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::signum{.beta = 1}.check(), "signum: beta must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::signum{.weight_decay = -1}.check(),
                    "signum: weight_decay must be finite and at least 0, is -1");
}

// ---- Yogi ----------------------------------------------------------------------------------------------------------

TEST_CASE("yogi: both moments start at `initial`, so a value moves without a gradient (optax)") {
  trial t(ds::yogi{.lr = 1, .beta1 = 0.5, .beta2 = 0.75, .eps = 1, .initial = 0.25}, {1});
  CHECK(t.state(0) == std::vector{0.25});
  CHECK(t.state(1) == std::vector{0.25});
  CHECK(t.step({0})[0] == near(1 - 0.25 / (1 + 1)));  // m^ = 0.125 / 0.5, v^ = 0.25 / 0.25
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

TEST_CASE("yogi: decay is AdamW's") {
  trial t(ds::yogi{.lr = 0.25, .initial = 0, .weight_decay = 0.5}, {8});
  CHECK(t.step({0}) == std::vector{7.0});
}

TEST_CASE("yogi: bad input") {
  CHECK_THROWS_WITH(ds::yogi{.beta2 = 1}.check(), "yogi: beta2 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::yogi{.initial = -1}.check(), "yogi: initial must be finite and at least 0, is -1");
  CHECK_NOTHROW(ds::yogi{}.check());
}

// ---- AdaBelief -----------------------------------------------------------------------------------------------------

TEST_CASE("adabelief: s is the distance to the new mean, and keeps each step's eps_root") {
  trial t(ds::adabelief{.lr = 1, .beta1 = 0.5, .beta2 = 0.5, .eps = 2, .eps_root = 1}, {1});
  CHECK(t.step({4})[0] == near(1 - 4 / (std::sqrt(6) + 2)));  // m = 2, s = 0.5 2^2 + 1
  CHECK(t.state(1) == std::vector{3.0});
  t.step({2});  // m = 2: no distance
  CHECK(t.state(0) == std::vector{2.0});
  CHECK(t.state(1) == std::vector{2.5});
}

TEST_CASE("adabelief: at its small default eps a value without gradients stays") {
  trial t(ds::adabelief{}, {1});
  for (int i = 0; i < 3; ++i) CHECK(t.step({0}) == std::vector{1.0});
}

TEST_CASE("adabelief: decay is AdamW's") {
  trial t(ds::adabelief{.lr = 0.25, .weight_decay = 0.5}, {8});
  CHECK(t.step({0}) == std::vector{7.0});
}

TEST_CASE("adabelief: bad input") {
  CHECK_THROWS_WITH(ds::adabelief{.beta1 = -1}.check(), "adabelief: beta1 must be in [0, 1), is -1");
  CHECK_THROWS_WITH(ds::adabelief{.eps_root = -1}.check(), "adabelief: eps_root must be finite and at least 0, is -1");
  CHECK_NOTHROW(ds::adabelief{}.check());
}

// ---- Adan ----------------------------------------------------------------------------------------------------------

TEST_CASE("adan: at the first step there is no difference of gradients") {
  trial t(ds::adan{.lr = 1, .beta1 = 0.5, .beta2 = 0.75, .beta3 = 0.5, .eps = 1, .eps_root = 9}, {8});
  CHECK(t.step({4})[0] == near(8 - 4. / (5 + 1)));  // m^ = 4, n^ = 16
  CHECK(t.state(1) == std::vector{0.0});
  CHECK(t.state(3) == std::vector{4.0});
}

TEST_CASE("adan: the difference weighs 1 - b2 as in optax, or b2 as in the paper") {
  ds::adan rule{.lr = 1, .beta1 = 0.5, .beta2 = 0.75, .beta3 = 0.5, .eps = 1, .eps_root = 0};
  for (double c : {0.25, 0.75}) {
    rule.paper_weight = c == 0.75;
    trial t(rule, {8});
    double const p = t.step({4})[0];
    double const m = 0.5 * 2 + 0.5 * 6, v = 0.25 * 2, u = 6 + c * 2, n = 0.5 * 8 + 0.5 * u * u;
    double const step = (m / 0.75 + c * v / 0.4375) / (std::sqrt(n / 0.75) + 1);
    CHECK(t.step({6})[0] == near(p - step));
    CHECK(t.state(0) == std::vector{m});
    CHECK(t.state(1) == std::vector{v});
    CHECK(t.state(2) == std::vector{n});
  }
}

TEST_CASE("adan: decay is additive, not the paper's division by 1 + lr wd") {
  trial t(ds::adan{.lr = 0.25, .weight_decay = 0.5}, {8});
  CHECK(t.step({0}) == std::vector{7.0});
}

TEST_CASE("adan: bad input") {
  CHECK_THROWS_WITH(ds::adan{.beta3 = 1}.check(), "adan: beta3 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::adan{.eps_root = -1}.check(), "adan: eps_root must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::adan{.eps = -1}.check(), "adan: eps must be finite and at least 0, is -1");
  CHECK_NOTHROW(ds::adan{}.check());
}

// ---- ADOPT ---------------------------------------------------------------------------------------------------------

TEST_CASE("adopt: the first step sets v and moves nothing, not even by decay") {
  for (bool clip : {true, false}) {
    trial t(ds::adopt{.lr = 1, .weight_decay = 0.5, .clip = clip}, {8});
    CHECK(t.step({4}) == std::vector{8.0});
    CHECK(t.state(0) == std::vector{0.0});
    CHECK(t.state(1) == std::vector{16.0});
  }
}

TEST_CASE("adopt: a gradient is divided by the v before it") {
  trial t(ds::adopt{.lr = 0.5, .beta1 = 0.5, .beta2 = 0.75, .clip = false}, {8});
  t.step({4});
  CHECK(t.step({12}) == std::vector{8 - 0.5 * 1.5});  // u = 12 / 4, m = 0.5 u
  CHECK(t.state(1) == std::vector{0.75 * 16 + 0.25 * 144});
}

TEST_CASE("adopt: what is divided is clipped to the fourth root of t - 1") {
  trial t(ds::adopt{.lr = 0.5, .beta1 = 0, .beta2 = 0.75}, {8});
  t.step({1});
  CHECK(t.step({-1e6}) == std::vector{8.5});  // t = 2
  trial late(ds::adopt{.lr = 0.5, .beta1 = 0, .beta2 = 0.75}, {8});
  double p = 8;
  for (int i = 1; i <= 16; ++i) p = late.step({1})[0];
  CHECK(late.step({1e6})[0] == near(p - 0.5 * 2));  // t = 17
}

TEST_CASE("adopt: eps is the least divisor") {
  trial t(ds::adopt{.lr = 0.5, .beta1 = 0, .eps = 0.25, .clip = false}, {8});
  t.step({0});
  CHECK(t.step({1}) == std::vector{8 - 0.5 * 4});
}

TEST_CASE("adopt: decay is AdamW's from the second step on, and a gradient that is no number is not clipped away") {
  trial t(ds::adopt{.lr = 0.25, .weight_decay = 0.5}, {8});
  t.step({0});
  CHECK(t.step({0}) == std::vector{7.0});
  CHECK(std::isnan(t.step({not_a_number})[0]));
}

TEST_CASE("adopt: bad input") {
  CHECK_THROWS_WITH(ds::adopt{.beta1 = 1}.check(), "adopt: beta1 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::adopt{.eps = 0}.check(), "adopt: eps must be above 0, is 0");
  CHECK_NOTHROW(ds::adopt{}.check());
}

// ---- AdEMAMix ------------------------------------------------------------------------------------------------------

TEST_CASE("ademamix: the fast mean is corrected for bias, the slow one is not") {
  trial t(ds::ademamix{.lr = 1, .beta1 = 0.5, .beta2 = 0.75, .beta3 = 0.75, .alpha = 4, .eps = 1}, {8});
  CHECK(t.step({4})[0] == near(8 - (4 + 4 * 1) / (4 + 1.)));
  CHECK(t.state(0) == std::vector{2.0});
  CHECK(t.state(1) == std::vector{1.0});
  CHECK(t.state(2) == std::vector{4.0});
}

TEST_CASE("ademamix: decay is AdamW's") {
  trial t(ds::ademamix{.lr = 0.25, .weight_decay = 0.5}, {8});
  CHECK(t.step({0}) == std::vector{7.0});
}

TEST_CASE("ademamix: bad input") {
  CHECK_THROWS_WITH(ds::ademamix{.beta3 = 1}.check(), "ademamix: beta3 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::ademamix{.alpha = -1}.check(), "ademamix: alpha must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::ademamix{.lr = -1}.check(), "ademamix: lr must be finite and at least 0, is -1");
  CHECK_NOTHROW(ds::ademamix{}.check());
}

// ---- optimistic methods --------------------------------------------------------------------------------------------

TEST_CASE("optimistic: the first step takes the gradient for the one before (optax)") {
  trial t(ds::optimistic{.lr = 0.25, .alpha = 1, .beta = 0.5}, {8});
  CHECK(t.step({4}) == std::vector{7.0});
  CHECK(t.step({2}) == std::vector{7 - 0.25 * (1.5 * 2 - 0.5 * 4)});
  CHECK(t.state(0) == std::vector{2.0});
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

TEST_CASE("optimistic_adam: without Nesterov a constant gradient moves by lr alpha") {
  trial t(ds::optimistic_adam{.lr = 0.25, .eps = 0, .alpha = 0.5, .beta = 0.75, .nesterov = false}, {8});
  for (int i = 1; i <= 3; ++i) {
    CHECK(t.step({-3})[0] == near(8 + i * 0.125));
    CHECK(t.state(2)[0] == near(-1));  // Adam's step without lr
  }
}

TEST_CASE("optimistic_adam: Adam's step takes the gradient's place") {
  trial t(ds::optimistic_adam{.lr = 1, .beta1 = 0.5, .beta2 = 0.5, .eps = 1, .beta = 0.5, .nesterov = false}, {8});
  double const p = t.step({4})[0];
  CHECK(p == near(8 - 4. / 5));
  double const u = -1 / 0.75 / (std::sqrt(12 / 0.75) + 1);  // m = 1 - 2, v = 4 + 8
  CHECK(t.step({-4})[0] == near(p - (1.5 * u - 0.5 * 4 / 5)));
}

TEST_CASE("optimistic_adam: Nesterov's form looks one step of bias correction ahead") {
  trial t(ds::optimistic_adam{.lr = 0.75, .beta1 = 0.5, .eps = 0}, {8});
  CHECK(t.step({4})[0] == near(8 - 0.75 * (0.5 * 2 / 0.75 + 4) / 4));
}

TEST_CASE("optimistic, optimistic_adam: bad input") {
  CHECK_THROWS_WITH(ds::optimistic{.lr = -1}.check(), "optimistic: lr must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::optimistic{.alpha = -1}.check(), "optimistic: alpha must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::optimistic{.beta = -1}.check(), "optimistic: beta must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::optimistic_adam{.lr = -1}.check(), "optimistic_adam: lr must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::optimistic_adam{.beta1 = 1}.check(), "optimistic_adam: beta1 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::optimistic_adam{.beta2 = 1}.check(), "optimistic_adam: beta2 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::optimistic_adam{.eps = -1}.check(),
                    "optimistic_adam: eps must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::optimistic_adam{.alpha = -1}.check(),
                    "optimistic_adam: alpha must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::optimistic_adam{.beta = -1}.check(),
                    "optimistic_adam: beta must be finite and at least 0, is -1");
}

// ---- Fromage -------------------------------------------------------------------------------------------------------

TEST_CASE("fromage: a tensor moves by lr of its norm and is shrunk by 1 / sqrt(1 + lr^2)") {
  trial t(ds::fromage{.lr = 0.75}, {3, 4});
  auto const p = t.step({6, 8});
  CHECK(p[0] == near((3 - 0.75 * 0.5 * 6) * 0.8));
  CHECK(p[1] == near((4 - 0.75 * 0.5 * 8) * 0.8));
}

TEST_CASE("fromage: a gradient at right angles turns the tensor and keeps its norm") {
  trial t(ds::fromage{.lr = 0.75}, {3, 0});
  auto const p = t.step({0, 2});
  CHECK(std::hypot(p[0], p[1]) == near(3));
  CHECK(p[1] == near(-3 * 0.6));
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

TEST_CASE("fromage: bad input") {
  CHECK_THROWS_WITH(ds::fromage{.lr = -1}.check(), "fromage: lr must be finite and at least 0, is -1");
  CHECK_THROWS_WITH(ds::fromage{.min_norm = -1}.check(), "fromage: min_norm must be finite and at least 0, is -1");
}

// ---- NovoGrad ------------------------------------------------------------------------------------------------------

TEST_CASE("novograd: v starts at the first squared norm, and the momentum has no factor 1 - b1 (optax)") {
  trial t(ds::novograd{.lr = 1, .beta1 = 0.5, .beta2 = 0.25, .eps = 5}, {1, 1});
  auto p = t.step({3, 4});
  CHECK(p[0] == near(1 - 0.3));  // m = 3 / (5 + 5)
  CHECK(p[1] == near(1 - 0.4));
  double const m = 0.5 * 0.3 + 6 / (std::sqrt(0.25 * 25 + 0.75 * 100) + 5);
  p = t.step({6, 8});
  CHECK(t.state(0)[0] == near(m));
  CHECK(p[0] == near(0.7 - m));
}

TEST_CASE("novograd: decay goes into the momentum, after the division") {
  trial t(ds::novograd{.lr = 0.25, .beta1 = 0.5, .weight_decay = 0.5}, {8});
  CHECK(t.step({0}) == std::vector{7.0});
  CHECK(t.state(0) == std::vector{4.0});
  CHECK(t.step({0}) == std::vector{7 - 0.25 * 5.5});
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

TEST_CASE("novograd: bad input") {
  CHECK_THROWS_WITH(ds::novograd{.beta2 = 1}.check(), "novograd: beta2 must be in [0, 1), is 1");
  CHECK_THROWS_WITH(ds::novograd{.eps = 0}.check(), "novograd: eps must be above 0, is 0");
  CHECK_NOTHROW(ds::novograd{}.check());
}

// ---- noisy SGD -----------------------------------------------------------------------------------------------------

TEST_CASE("noisy SGD is sgd with gradient_noise: the variance at update t = 1, 2, ... is eta / t^gamma") {
  std::size_t const n = 100'000;
  std::vector<double> p(n), g(n, 0.5);
  ds::parameters<double> list;
  list.add("p", p.data(), g.data(), n);
  ds::optimizer opt{list, ds::sgd{.lr = 0.25}, ds::gradient_noise{.eta = 4, .gamma = 0.55, .seed = 3}};
  for (int t = 1; t <= 3; ++t) {
    auto const before = p;
    opt.step();
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double const noise = (before[i] - p[i]) / 0.25 - 0.5;
      sum += noise, squares += noise * noise;
    }
    double const variance = 4 / std::pow(t, 0.55);
    CHECK(std::abs(sum / n) <= 5 * std::sqrt(variance / n));
    CHECK(std::abs(squares / n / variance - 1) <= 5 * std::sqrt(2. / n));
  }
}
