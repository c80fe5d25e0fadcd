// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// More mistakes and surprises of other systems, in what a step does around its rule: loss scale, clipping,
// accumulation, groups. docs/design/traps.md lists all of them.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/maximize.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#include "support/problem.hpp"
#include "support/sizes.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

using namespace test;
namespace ds = descent;
using ds::half;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();
std::vector<std::size_t> const sizes{3, 0, chunk + 9, 21};

template <class T> std::vector<T> copy(std::span<T const> x) { return {x.begin(), x.end()}; }

/// Called by a caller's functions: throws after `calls_left` more calls.
struct stop {};
int calls_left = -1;
void called() {
  if (calls_left >= 0 && calls_left-- == 0) throw stop{};
}
struct own_rate {
  double operator()(std::int64_t t) const { return called(), 0.5 / double(1 + t); }
};
struct own_batch {
  double operator()(std::int64_t) const { return called(), 3; }
};
template <ds::scope Over> struct own_clip {
  using policy_kind = ds::kind::clip;
  static constexpr ds::norm of = ds::norm::l2;
  static constexpr ds::scope over = Over;
  double factor(double norm) const { return called(), 1 / (1 + norm); }
};
/// Momentum whose rate is in a memory.
struct own_rule {
  double lr = 0.5;
  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real lr; };
  struct memory { double factor = 1; };
  terms<double> at(std::int64_t, memory& m) const {
    m.factor *= 0.75;
    return called(), terms<double>{lr * m.factor};
  }
  template <class Real> static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.b = s.b + g;
    return p - k.lr * s.b;
  }
  template <class Real> Real averaged(Real p, state<Real> const& s) const { return p + Real(float(lr)) * s.b; }
};
struct own_rule_of_sums : own_rule {
  template <class Real> struct sums { Real g; };
  static constexpr ds::scope sums_over = ds::scope::tensor;
  template <class Real> static sums<Real> sum(Real, Real g, terms<Real> const&) { return {g * g}; }
  terms<double> at(std::int64_t) const { return called(), terms<double>{lr}; }
  terms<double> at(std::int64_t, sums<double> const& all, memory& m) const {
    m.factor = all.g + 1;
    return called(), terms<double>{lr / m.factor};
  }
};

/// Everything that an optimizer shows.
template <class O> std::vector<std::byte> all_of(O& opt) {
  std::vector<std::byte> all;
  auto const add = [&](auto const& x) {
    auto const* p = reinterpret_cast<std::byte const*>(&x);
    all.insert(all.end(), p, p + sizeof x);
  };
  auto const r = opt.report();
  add(r.step), add(r.skipped), add(r.applied), add(r.grad_norm), add(r.learning_rate), add(r.loss_scale),
      add(r.clip_factor);
  for (char c : r.why) add(c);
  for (char const* name : {"tensor0", "tensor2", "tensor3"})
    for (auto x : opt.template state<0>(name)) add(x);
  for (auto x : opt.rule_memory()) add(x);
  return all;
}

}  // namespace

TEST_CASE("trap of optax.apply_if_finite: no number of bad steps in a row makes one of them count") {
  // After max_consecutive_errors it applies the non-finite update.
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
  CHECK(ds::clip_adaptive{.c = 0.5, .eps = 0.25}.factor(2, 0) == 0.5 * 0.25 / 2);  // a tensor of zeros can move
}

TEST_CASE(
    "trap of ensmallen 3.10 and Horovod: the length of Adam's step does not depend on the number of micro-batches") {
  // There, lr is divided by the batch size for gradients that are sums, or sums are not divided.
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
  // There, the inner rule runs at each micro-batch, with zero updates in between; decay, noise and averages must not.
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

TEST_CASE("trap of two groups with one buffer: a tensor that is listed twice is refused, in one group or in two") {
  // torch warns of duplicates in one group; two optimizers, or fused lists, step the tensor twice.
  std::vector<float> w(8), g(8);
  for (int second : {0, 1}) {
    ds::parameters<float> list;
    list.add("embedding", w.data(), g.data(), 8);
    list.add("output", w.data(), g.data(), 8, ds::group{second});
    CHECK_THROWS_AS((ds::optimizer{list, ds::sgd{}}), std::invalid_argument);
  }
}

TEST_CASE(
    "whatever a schedule, clip policy or rule throws in a step, nothing has changed, and the next step is the same") {
  auto const check = [](auto rule, auto... policies) {
    problem<float> p(sizes), q(sizes);
    p.group = q.group = {0, 1, 0, 1};
    ds::optimizer opt{p.parameters(), rule, ds::learning_rate(own_rate{}), policies...},
        still{q.parameters(), rule, ds::learning_rate(own_rate{}), policies...};
    int thrown = 0;
    for (int t = 1; t <= 8; ++t)
      for (int n = 0;; ++n) {
        p.set_gradients(t, 1024), q.set_gradients(t, 1024);
        auto const values = p.value, gradients = p.grad;
        auto const owned = all_of(opt);
        calls_left = n;
        try {
          opt.step();
          calls_left = -1;
          still.step();
          CHECK(same_bits(p.value, q.value));
          CHECK(same_bits(p.grad, q.grad));
          CHECK(all_of(opt) == all_of(still));
          break;
        } catch (stop) {
          ++thrown;
          INFO("step ", t, ", call ", n);
          CHECK(same_bits(p.value, values));
          CHECK(same_bits(p.grad, gradients));
          CHECK(all_of(opt) == owned);
        }
      }
    CHECK(opt.report().step > 1);
    CHECK(thrown > 10);
    calls_left = 1;
    auto const values = p.value;
    CHECK_THROWS_AS(opt.swap_average(), stop);
    calls_left = -1;
    CHECK(same_bits(p.value, values));
    opt.swap_average(), opt.swap_average();
    CHECK(same_bits(p.value, values));
  };
  check(own_rule{}, own_clip<ds::scope::model>{}, ds::accumulate_by{own_batch{}}, ds::dynamic_loss_scale{.init = 1024},
        ds::zero_grad{});
  check(own_rule_of_sums{}, own_clip<ds::scope::group>{}, ds::accumulate_by{own_batch{}});
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
