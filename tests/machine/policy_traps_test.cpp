// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// More mistakes and surprises of other systems, in what a step does around its rule: loss scale, clipping,
// accumulation, groups. The table of all of them is docs/design/traps.md.
#include <descent/accumulate.hpp>
#include <descent/average.hpp>
#include <descent/clip.hpp>
#include <descent/loss_scale.hpp>
#include <descent/maximize.hpp>
#include <descent/noise.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/linear.hpp>
#include <descent/vary.hpp>

#include <doctest/doctest.h>

#include "support/problem.hpp"
#include "support/sizes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

using namespace test;
namespace ds = descent;
using ds::half;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();
std::vector<std::size_t> const sizes{3, 0, chunk + 9, 21};

template <class T> std::vector<T> copy(std::span<T const> x) { return {x.begin(), x.end()}; }

}  // namespace

TEST_CASE("trap of optax.apply_if_finite: no number of bad steps in a row makes one of them count") {
  // After max_consecutive_errors it applies the update that is not finite.
  problem<float> p(sizes);
  ds::optimizer opt{p.parameters(), ds::adamw{}, ds::skip_nonfinite{}};
  p.set_gradients(1);
  p.grad[3][7] = float(not_a_number);
  auto const before = p.value;
  for (int n = 0; n < 1000; ++n) opt.step();
  CHECK(same_bits(p.value, before));
  CHECK(opt.report().step == 0);
  CHECK(opt.report().skipped == 1000);
}

TEST_CASE(
    "trap of tiny-cuda-nn's static scale and of apex's plain Adam: an overflow is looked for with any loss scale") {
  problem<half> p(sizes);
  ds::optimizer opt{p.parameters(), ds::adam{}, ds::static_loss_scale{128}};
  p.set_gradients(1, 128);
  p.grad[2][chunk] = ds::narrow<half>(infinity);
  auto const before = p.value;
  opt.step();
  CHECK_FALSE(opt.report().applied);
  CHECK(same_bits(p.value, before));
  for (half m : opt.state("tensor2", "m")) CHECK_UNARY(ds::widen<double>(m) == 0);
}

TEST_CASE("trap of clip_grad_norm_: one infinity does not make all gradients zero or not numbers") {
  // max / inf is 0, and 0 times inf is not a number.
  for (double bad : {infinity, not_a_number}) {
    problem<float> p(sizes);
    ds::optimizer opt{p.parameters(), ds::sgd{.lr = 1, .momentum = 0.9}, ds::clip_norm{.max = 1, .eps = ds::torch_eps}};
    p.set_gradients(1);
    opt.step();
    auto const value = p.value, gradient = p.grad;
    auto const momentum = copy(opt.state("tensor2", "b"));
    p.grad[0][1] = float(bad);
    opt.step();
    CHECK(same_bits(p.value, value));
    CHECK(same_bits(copy(opt.state("tensor2", "b")), momentum));
    p.grad[0][1] = gradient[0][1];
    CHECK(same_bits(p.grad, gradient));
  }
}

TEST_CASE("trap of a constant in the divisor: gradients of exactly the largest norm stay, and of norm 0 are no 0 / 0") {
  // torch, apex and Megatron divide by norm + 1e-6.
  double p[2] = {0, 0}, g[2] = {3, 4};
  ds::parameters<double> list;
  list.add("p", p, g, 2);
  ds::optimizer opt{list, ds::sgd{.lr = 1}, ds::clip_norm{5}};
  opt.step();
  CHECK(opt.report().clip_factor == 1);
  CHECK(p[1] == -4);
  g[0] = g[1] = 0;
  opt.step();
  CHECK(opt.report().clip_factor == 1);
  CHECK(p[1] == -4);
  for (double parameters : {0.0, 1.0}) CHECK(ds::clip_adaptive{}.factor(0, parameters) == 1);
  CHECK(ds::clip_adaptive{.c = 0.5, .eps = 0.25}.factor(2, 0) == 0.5 * 0.25 / 2);  // a tensor of zeros can start
}

TEST_CASE(
    "trap of ensmallen 3.10 and Horovod: the length of Adam's step does not depend on the number of micro-batches") {
  // There lr is divided by the batch size for gradients that are sums, or sums are not divided.
  auto const moved = [](int n, double weight) {
    problem<double> p({9});
    ds::optimizer opt{p.parameters(), ds::adam{.lr = 0.1, .eps = 1e-3}, ds::accumulate{n}};
    auto const before = p.value;
    p.set_gradients(1, n * weight);
    for (int i = 0; i < n; ++i) opt.step(weight);
    CHECK(opt.report().step == 1);
    return p.value[0][3] - before[0][3];
  };
  double const one = moved(1, 1);
  CHECK(std::abs(one) == doctest::Approx(0.1).epsilon(0.01));
  for (int n : {2, 3, 32})
    for (double weight : {1.0, 7.0}) CHECK(moved(n, weight) == doctest::Approx(one).epsilon(1e-13));
}

TEST_CASE(
    "trap of optax.MultiSteps and apply_every: a micro-batch that only counts moves nothing and is seen by nothing") {
  // There the inner rule is evaluated at each, with updates of zero in between; decay, noise and averages must not be.
  problem<float> p(sizes);
  ds::optimizer opt{p.parameters(),           ds::adamw{.lr = 0.1, .weight_decay = 0.5}, ds::accumulate{4},
                    ds::lookahead{.k = 1},    ds::gradient_noise{.eta = 1},              ds::ema{.decay = 0.5}};
  p.set_gradients(1);
  auto const before = p.value;
  auto const average = copy(opt.average("tensor2"));
  for (int n = 1; n <= 3; ++n) {
    opt.step();
    CHECK(same_bits(p.value, before));
    CHECK(copy(opt.average("tensor2")) == average);
    CHECK(opt.report().step == 0);
    for (float m : opt.state("tensor2", "m")) CHECK_UNARY(m == 0);
  }
  opt.step();
  CHECK(opt.report().step == 1);
  CHECK_FALSE(same_bits(p.value, before));
  for (int n = 1; n <= 3; ++n) opt.step();
  CHECK(opt.report().step == 1);
  opt.step();
  CHECK(opt.report().step == 2);
}

TEST_CASE("trap of optax.masked: what is left out does not move, least of all by its raw gradient") {
  problem<float> p(sizes);
  p.group = {0, 0, 1, 0};
  ds::optimizer opt{p.parameters(), ds::sgd{.lr = 1, .weight_decay = 0.5}, ds::clip_norm{1}, ds::lookahead{.k = 1}};
  opt.freeze(1);
  auto const before = p.value;
  for (int t = 1; t <= 3; ++t) p.set_gradients(t), opt.step();
  CHECK(same_bits(p.value[2], before[2]));
  CHECK_FALSE(same_bits(p.value[3], before[3]));
}

TEST_CASE("trap of load_state_dict: state goes to the parameter of its name, whatever the order") {
  // torch matches by position in the groups.
  problem<float> p({5, 5}), q({5, 5});
  ds::parameters<float> turned;
  q.add(turned, 1), q.add(turned, 0);
  ds::optimizer a{p.parameters(), ds::sgd{.lr = 0.5, .momentum = 0.5}};
  ds::optimizer b{turned, ds::sgd{.lr = 0.5, .momentum = 0.5}};
  p.set_gradients(1);
  a.step();
  q.value = p.value;
  for (auto name : {"tensor0", "tensor1"}) b.set_state<0>(name, a.state<0>(name));
  b.set_step(a.report().step);
  for (int t = 2; t <= 4; ++t) {
    p.set_gradients(t), q.set_gradients(t);
    a.step(), b.step();
  }
  CHECK(same_bits(p.value, q.value));
}

TEST_CASE("trap of two groups with one buffer: a tensor that is listed twice is refused, in one group or in two") {
  // torch warns of duplicates in one group; two optimizers, or fused lists, step it twice.
  std::vector<float> w(8), g(8);
  for (int second : {0, 1}) {
    ds::parameters<float> list;
    list.add("embedding", w.data(), g.data(), 8);
    list.add("output", w.data(), g.data(), 8, ds::group{second});
    CHECK_THROWS_AS((ds::optimizer{list, ds::sgd{}}), std::invalid_argument);
  }
}

TEST_CASE("trap of maximize: decay draws to zero, whichever way the gradient goes") {
  double p[1] = {2}, g[1] = {0};
  ds::parameters<double> list;
  list.add("p", p, g, 1);
  ds::optimizer l2{list, ds::sgd{.lr = 0.5, .weight_decay = 0.5}, ds::maximize{}};
  l2.step();
  CHECK(p[0] == 1.5);
  ds::optimizer decoupled{list, ds::adamw{.lr = 0.5, .weight_decay = 0.5}, ds::maximize{}};
  decoupled.step();
  CHECK(p[0] == 1.125);
}

TEST_CASE("trap of a scheduler that is stepped after a skip: the rate is that of the updates applied") {
  // torch's scheduler.step() is the caller's, and drifts from the optimizer's count by one for each skip.
  problem<float> p({9});
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::skip_nonfinite{},
                    ds::learning_rate(ds::linear{.from = 1, .to = 0, .steps = 10})};
  for (int t = 0; t < 5; ++t) {
    for (double bad : {not_a_number, infinity}) {
      p.set_gradients(1);
      p.grad[0][0] = float(bad);
      opt.step();
    }
    p.set_gradients(1);
    opt.step();
    CHECK(opt.report().learning_rate == ds::linear{.from = 1, .to = 0, .steps = 10}(t));
  }
}
