// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Training with large batches: scaling, warm-up, growing batches, noise scale, ghost statistics.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/training/batch_noise.hpp>
#include <descent/training/ghost_batch.hpp>
#include <descent/training/large_batch.hpp>

#include <doctest/doctest.h>

#include "support/larger.hpp"
#include "support/message.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds = descent;
using doctest::Approx;
using test::message;

TEST_CASE("rates scale with the batch, linearly or with its root") {
  CHECK(ds::whole_batch(32, 8, 4) == 1024);
  CHECK(ds::linear_scaled(0.1, 8192, 256) == 3.2);
  CHECK(ds::sqrt_scaled(0.1, 1024, 256) == 0.2);
  CHECK(ds::linear_scaled(0.1, 128, 256) == 0.05);
  static_assert(ds::linear_scaled(1, 64, 32) == 2);
}

TEST_CASE("gradual warm-up: from the small batch's rate, by a constant amount, to the scaled one (Goyal)") {
  // 90 epochs of 8192 images of 1281167: lr 0.1 * 32, warm-up of 5 epochs, / 10 at epochs 30, 60, 80
  std::int64_t const epoch = ds::updates_in(1, 1281167, 8192);
  CHECK(epoch == 157);
  auto const steps = [epoch](std::int64_t t) {
    std::int64_t const e = t / epoch;
    return 3.2 * (e < 30 ? 1 : e < 60 ? 0.1 : e < 80 ? 0.01 : 0.001);
  };
  ds::gradual_warmup<decltype(steps)> const s{.k = 32, .steps = 5 * epoch, .then = steps};
  CHECK(s(0) == Approx(0.1).epsilon(1e-15));
  CHECK(s(5 * epoch) == 3.2);
  CHECK(s(5 * epoch - 1) < 3.2);
  for (std::int64_t t = 1; t < 5 * epoch; ++t)
    CHECK(s(t) - s(t - 1) == Approx((3.2 - 0.1) / double(5 * epoch)).epsilon(1e-10));
  CHECK(s(30 * epoch - 1) == 3.2);  // the milestones count from the start of training
  CHECK(s(30 * epoch) == Approx(0.32));
  CHECK(message([&] { ds::gradual_warmup<ds::constant>{.k = 0}.check(); }) ==
        "gradual_warmup: k must be above 0 and finite, is 0");
}

TEST_CASE("LEGW: the root of the rate, and as many updates of warm-up whatever the batch") {
  ds::legw const base{.lr = 0.1, .warmup_epochs = 0.3125};
  for (int k : {1, 4, 16, 32}) {
    ds::legw const scaled = base.for_batch(256. * k, 256);
    CHECK(scaled.lr == Approx(0.1 * std::sqrt(k)).epsilon(1e-15));
    CHECK(scaled.warmup_epochs == 0.3125 * k);
    CHECK(ds::updates_in(scaled.warmup_epochs, 32 * 8192, 256 * k) == 320);
  }
}

TEST_CASE("training longer: k times the batch makes as many updates in k times the epochs") {
  std::int64_t const updates = ds::updates_in(90, 1 << 20, 256);
  CHECK(ds::updates_in(ds::epochs_of_equal_updates(90, 4096, 256), 1 << 20, 4096) == updates);
  CHECK(ds::updates_in(1, 10, 4) == 3);
  CHECK(message([] { ds::updates_in(1, 10, 0); }) == "updates_in: batch must be above 0, is 0");
}

TEST_CASE("a batch that grows keeps rate / batch as the decay would have it, also where it can grow no more") {
  ds::batch_growth<ds::step> const growth{
      .rate = {.initial = 0.5, .factor = 0.2, .every = 10}, .batch = 64, .largest = 1000, .micro = 8, .ranks = 4};
  growth.check();
  auto const n = accumulated(growth);
  auto const lr = ds::remaining_rate{growth};
  struct {
    std::int64_t t;
    double n, lr;
  } const rows[] = {
      {0, 2, 0.5}, {9, 2, 0.5}, {10, 10, 0.5}, {19, 10, 0.5}, {20, 31, 0.02 * 992 / 64}, {30, 31, 0.004 * 992 / 64}};
  for (auto const& row : rows) {
    CAPTURE(row.t);
    CHECK(n(row.t) == row.n);
    CHECK(lr(row.t) == Approx(row.lr).epsilon(1e-14));
    CHECK(lr(row.t) / (32 * n(row.t)) == Approx(growth.rate(row.t) / 64).epsilon(1e-14));
  }
  CHECK(ds::micro_batches{ds::constant{100}, 32, 2}(0) == 2);  // 1.56 rounded
  CHECK(ds::micro_batches{ds::constant{10}, 32, 2}(0) == 1);
  auto bad = growth;
  bad.largest = 32;
  CHECK(message([&] { bad.check(); }) == "batch_growth: largest must be at least batch, 64, is 32");
  bad = growth, bad.micro = 32;
  CHECK(message([&] { bad.check(); }) == "batch_growth: batch must be at least micro times ranks, 128, is 64");
}

TEST_CASE("a batch that grows after a warm-up: up to there it is the batch, and the rate is the schedule's") {
  using rise = ds::warmup<ds::step>;
  ds::batch_growth<rise> const growth{.rate = {.steps = 10, .then = {.initial = 0.1, .factor = 0.2, .every = 100}},
                                      .batch = 2048, .largest = 32768, .micro = 32, .ranks = 8, .begin = 10};
  growth.check();
  auto const n = accumulated(growth);
  auto const lr = ds::remaining_rate{growth};
  for (std::int64_t t = 0; t < 110; ++t) {
    CHECK(n(t) == 8);
    CHECK(lr(t) == growth.rate(t));
  }
  CHECK(lr(0) == Approx(0.01).epsilon(1e-15));
  for (std::int64_t t : {110, 209}) {
    CHECK(n(t) == 40);
    CHECK(lr(t) == Approx(0.1).epsilon(1e-15));
  }
  CHECK(n(210) == 128);  // the largest batch
  CHECK(lr(210) == Approx(0.004 * 16).epsilon(1e-14));
  CHECK(lr(310) == Approx(0.0008 * 16).epsilon(1e-14));

  ds::batch_growth<ds::linear> const rising{.rate = {0.1, 0.4, 10}, .batch = 64, .largest = 128};
  for (std::int64_t t = 0; t < 20; ++t) CHECK(rising(t) == 64);  // never below the batch
  ds::batch_growth<ds::linear> const ends{.rate = {0.1, 0, 10}, .batch = 64, .largest = 128};
  CHECK(ends(10) == 128);
  CHECK(ds::remaining_rate{ends}(10) == 0);
}

TEST_CASE("arguments that make no batch are refused: which, what is allowed, what it is") {
  double const inf = std::numeric_limits<double>::infinity();
  CHECK(message([] { ds::whole_batch(0); }) == "whole_batch: micro must be in [1, 2^31), is 0");
  CHECK(message([] { ds::whole_batch(1, 1, 0); }) == "whole_batch: accumulated must be at least 1, is 0");
  CHECK(message([] { ds::linear_scaled(0.1, 256, 0); }) ==
        "linear_scaled: base_batch must be above 0 and finite, is 0");
  CHECK(message([] { ds::sqrt_scaled(0.1, -1, 256); }) == "sqrt_scaled: batch must be above 0 and finite, is -1");
  CHECK(message([] { ds::legw{0.1, 1}.for_batch(512, 0); }) == "legw: base_batch must be above 0 and finite, is 0");
  CHECK(message([&] { ds::epochs_of_equal_updates(90, inf, 256); }) ==
        "epochs_of_equal_updates: batch must be above 0 and finite, is inf");
  CHECK(message([] { ds::updates_in(-1, 10, 2); }) == "updates_in: epochs must be finite and at least 0, is -1");
  CHECK(message([] { ds::updates_in(1e300, 10, 2); }) ==
        "updates_in: the number of updates must be at most 2^62, is 5e+300");
  CHECK(message([] { ds::gradual_warmup<ds::constant>{.steps = -12345678}.check(); }) ==
        "gradual_warmup: steps must be in [0, 2^62], is -12345678");
  CHECK(message([] { ds::micro_batches<ds::constant>{.ranks = 0}.check(); }) ==
        "micro_batches: ranks must be in [1, 2^31), is 0");
  using growth = ds::batch_growth<ds::constant>;
  CHECK(message([&] { growth{.rate = {1}, .largest = inf}.check(); }) ==
        "batch_growth: largest must be finite, is inf");
  CHECK(message([] { growth{.rate = {1}, .micro = 0}.check(); }) == "batch_growth: micro must be in [1, 2^31), is 0");
  CHECK(message([] { growth{.rate = {1}, .begin = -1}.check(); }) == "batch_growth: begin must be in [0, 2^62], is -1");
  CHECK(message([] { growth{}.check(); }) == "batch_growth: the rate at step begin must be finite and above 0, is 0");
  CHECK(message([] { ds::ghost_parts(5, 0); }) == "ghost_parts: part must be above 0, is 0");
  double x[2] = {1, 2};
  CHECK(message([&] { ds::ghost_running(x, 1, 0, 0.5, x); }) == "ghost_running: features must be above 0, is 0");
  CHECK(message([&] { ds::ghost_running(x, -1, 1, 0.5, x); }) == "ghost_running: parts must be at least 0, is -1");
  CHECK(message([&] { ds::ghost_normalize(x, 2, 1, 0, x, x, 1e-5, x); }) ==
        "ghost_normalize: part must be above 0, is 0");
  CHECK(message([&] { ds::ghost_normalize(x, 2, 1, 1, x, x, -1, x); }) ==
        "ghost_normalize: eps must be finite and at least 0, is -1");
  for (double huge : {1e10, 1e300, inf}) {
    CHECK(ds::micro_batches{ds::constant{huge}, 1, 1}(0) == 2147483647);
    CHECK(ds::detail::micro_batches_at(ds::accumulate_by{ds::constant{huge}}, 0) == 2147483647);
  }
  CHECK(ds::micro_batches{ds::constant{std::nan("")}, 1, 1}(0) == 1);
}

TEST_CASE("grow_batch runs it: updates come after ever more calls, at the rate that is left") {
  double p = 0, g = 0;
  ds::parameters<double> params;
  params.add("p", &p, &g, 1);
  ds::optimizer opt{params, ds::sgd{}, ds::zero_grad{},
                    ds::grow_batch(ds::batch_growth<ds::step>{
                        .rate = {.initial = 1, .factor = 0.5, .every = 2}, .batch = 2, .largest = 4})};
  std::vector<std::int64_t> calls;
  std::vector<double> moved;
  for (int call = 1; call <= 30; ++call) {
    double const before = p;
    g += 1;
    opt.step();
    if (opt.report().applied) calls.push_back(call), moved.push_back(before - p);
  }
  CHECK(calls == std::vector<std::int64_t>{2, 4, 8, 12, 16, 20, 24, 28});
  CHECK(moved == std::vector<double>{1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25});
}

TEST_CASE("momentum correction: with it the rate inside the momentum is the rate outside, whatever the schedule") {
  auto const run = [](auto rule, auto rate) {
    std::array<double, 3> p{1, -2, 0.5}, g{};
    ds::parameters<double> params;
    params.add("p", p.data(), g.data(), 3);
    ds::optimizer opt{params, rule, ds::learning_rate(rate)};
    for (int t = 0; t < 40; ++t) {
      for (int i = 0; i < 3; ++i) g[i] = (i + 1) * p[i];
      opt.step();
    }
    return p;
  };
  auto const apart = [](auto const& a, auto const& b) {
    double most = 0;
    for (int i = 0; i < 3; ++i) most = test::larger(most, std::abs(a[i] - b[i]));
    return most;
  };
  ds::gradual_warmup<ds::constant> const rising{.k = 8, .steps = 20, .then = {0.05}};
  auto const outside = run(ds::sgd{.momentum = 0.9}, rising);
  CHECK(apart(run(ds::heavy_ball{.momentum = 0.9, .correction = true}, rising), outside) <= 1e-14);
  CHECK(apart(run(ds::heavy_ball{.momentum = 0.9}, rising), outside) > 1e-3);
  ds::constant const same{0.05};
  CHECK(apart(run(ds::heavy_ball{.momentum = 0.9}, same), run(ds::sgd{.momentum = 0.9}, same)) <= 1e-14);
}

TEST_CASE("the noise scale of exact norms is exact") {
  // |G|^2 = 4, S = 96: the expected squared norm over B examples is 4 + 96 / B
  ds::batch_noise noise{.small = 8, .large = 64, .decay = 0.9};
  for (int i = 0; i < 3; ++i) noise.update(std::sqrt(4 + 96. / 8), std::sqrt(4 + 96. / 64));
  CHECK(noise.squared_gradient() == Approx(4).epsilon(1e-12));
  CHECK(noise.trace() == Approx(96).epsilon(1e-12));
  CHECK(noise.scale() == Approx(24).epsilon(1e-12));
  auto const a = noise.advice();
  CHECK(a.batch == noise.scale());
  CHECK(a.step_gain == Approx(1 / (1 + 24. / 64)));
  CHECK(a.more_steps == Approx(1 + 24. / 64));
  CHECK(a.more_examples == Approx(1 + 64. / 24));
  CHECK(a.text == "64 examples, noise scale 24: a smaller batch would need less data");
}

TEST_CASE("numerator and denominator are averaged apart, each corrected for its start") {
  ds::batch_noise noise{.small = 1, .large = 2, .decay = 0.5};
  // estimates of |G|^2: 1, 4; of S: 2, 8
  noise.update(std::sqrt(1 + 2.), std::sqrt(1 + 1.));
  noise.update(std::sqrt(4 + 8.), std::sqrt(4 + 4.));
  CHECK(noise.squared_gradient() == Approx((0.25 * 1 + 0.5 * 4) / 0.75));
  CHECK(noise.trace() == Approx((0.25 * 2 + 0.5 * 8) / 0.75));
  CHECK(noise.scale() == Approx(2));
}

TEST_CASE("the noise scale of a model with known noise, through the optimizer's norms") {
  constexpr int n = 64, micro = 4, parts = 8;
  std::vector<float> p(n), g(n);
  ds::parameters<float> params;
  params.add("p", p.data(), g.data(), n);
  ds::optimizer opt{params, ds::sgd{.lr = 0}, ds::accumulate{parts}, ds::zero_grad{}, ds::skip_nonfinite{}};
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  ds::batch_noise noise{.small = micro, .large = micro * parts, .decay = 0.999};
  for (int t = 0; t < 1500; ++t) {
    double first = 0;
    for (int k = 0; k < parts; ++k) {
      // the mean over `micro` examples: true gradient 0.5 in each element, deviation 2 of an example
      for (float& x : g) x += 0.5f + 2 / std::sqrt(float(micro)) * normal(random);
      if (k == 0) first = opt.gradient_norm();
      opt.step();
    }
    noise.update(first, opt.report().grad_norm);
  }
  CHECK(noise.squared_gradient() == Approx(n * 0.25).epsilon(0.05));
  CHECK(noise.trace() == Approx(n * 4.0).epsilon(0.05));
  CHECK(noise.scale() == Approx(16).epsilon(0.1));
}

TEST_CASE("norms that are not finite, of an update that overflowed or was not measured, tell nothing about the noise") {
  float p[2] = {1, 1}, g[2];
  ds::parameters<float> params;
  params.add("p", p, g, 2);
  ds::optimizer scaled{params, ds::sgd{}, ds::dynamic_loss_scale{.init = 4}};
  ds::optimizer unmeasured{params, ds::sgd{}};
  ds::batch_noise noise{.small = 1, .large = 2};
  g[0] = g[1] = 4;
  scaled.step();
  noise.update(std::sqrt(3.), scaled.report().grad_norm);
  CHECK(noise.updates() == 1);
  CHECK(noise.squared_gradient() == Approx(1).epsilon(1e-6));
  g[0] = std::numeric_limits<float>::infinity();
  double const first = scaled.gradient_norm();
  scaled.step();
  CHECK(!scaled.report().applied);
  noise.update(first, scaled.report().grad_norm);
  g[0] = 4;
  unmeasured.step();
  CHECK(std::isnan(unmeasured.report().grad_norm));
  noise.update(1, unmeasured.report().grad_norm);
  CHECK(noise.updates() == 1);
  CHECK(noise.squared_gradient() == Approx(1).epsilon(1e-6));
}

TEST_CASE("a noise scale that is not known is not a number, and nonsense is refused") {
  ds::batch_noise none{.small = 1, .large = 2};
  CHECK(std::isnan(none.scale()));
  CHECK(none.advice().text == "too few updates: the estimate of the gradient is not above its noise");
  none.update(2, 1);  // 2 * 1 - 4 < 0
  CHECK(std::isnan(none.scale()));
  CHECK(message([] { ds::batch_noise{.small = 2, .large = 2}.update(1, 1); }) ==
        "batch_noise: large must be above small and finite, is 2");
  CHECK(message([] { ds::batch_noise{.small = 1, .large = 2}.update(-1, 1); }) ==
        "batch_noise: the norm of the small batch must be finite and at least 0, is -1");
}

TEST_CASE("ghost statistics: each part by its own mean and variance, the last one shorter") {
  std::vector<float> const x{1, 10, 3, 30, 5, 50, 9, 90, 2, 7};  // 5 rows of 2, parts of 2
  CHECK(ds::ghost_parts(5, 2) == 3);
  std::vector<double> mean(6), variance(6);
  ds::ghost_statistics(x.data(), 5, 2, 2, mean.data(), variance.data());
  CHECK(mean == std::vector<double>{2, 20, 7, 70, 2, 7});
  CHECK(variance == std::vector<double>{1, 100, 4, 400, 0, 0});

  std::vector<double> run{100, 1000};
  ds::ghost_running(mean.data(), 3, 2, 0.5, run.data());
  CHECK(run == std::vector<double>{100. / 8 + 2. / 8 + 7. / 4 + 1, 1000. / 8 + 20. / 8 + 70. / 4 + 3.5});

  std::vector<float> y(10);
  ds::ghost_normalize(x.data(), 5, 2, 2, mean.data(), variance.data(), 0.0625, y.data());
  CHECK(y[0] == Approx(-1 / std::sqrt(1.0625)));
  CHECK(y[7] == Approx(20 / std::sqrt(400.0625)));
  CHECK(y[8] == 0);

  std::vector<double> whole_mean(2), whole_variance(2);  // one part is plain batch normalization
  ds::ghost_statistics(x.data(), 5, 2, 5, whole_mean.data(), whole_variance.data());
  CHECK(whole_mean == std::vector<double>{4, 37.4});
  CHECK(whole_variance[0] == Approx((9 + 1 + 1 + 25 + 4) / 5.));
  CHECK(message([&] { ds::ghost_statistics(x.data(), 5, 2, 0, mean.data(), variance.data()); }) ==
        "ghost_statistics: part must be above 0, is 0");
}
