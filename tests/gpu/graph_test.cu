// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/accumulate.hpp>
#include <descent/average.hpp>
#include <descent/clip.hpp>
#include <descent/cuda.cuh>
#include <descent/loss_scale.hpp>
#include <descent/loss_scaler.hpp>
#include <descent/noise.hpp>
#include <descent/optimizer.hpp>
#include <descent/rounding.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/linear.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/storage.hpp>
#include <descent/vary.hpp>
#include <descent/zero_grad.hpp>

#include <limits>
#include <stdexcept>
#include <tuple>

namespace {

auto const rate = descent::warmup<descent::cosine>{.steps = 3, .then = {.peak = 1e-2, .steps = 8}};
auto const decay = descent::linear{.from = 0, .to = 0.1, .steps = 12};

auto make(test::tensors<descent::half>& x, test::stream const& s) {
  return descent::optimizer{x.on_device(),
                            descent::adamw{},
                            descent::learning_rate(rate),
                            descent::vary<&descent::adamw::weight_decay>(decay),
                            descent::master<float>{},
                            descent::clip_norm{1},
                            descent::cuda{s}};
}

/// Twelve launches of whatever `step` does, with an overflow in the sixth. The values after each.
template <class Step>
std::vector<std::vector<descent::half>> train(test::tensors<descent::half>& x, Step const& step) {
  std::vector<std::vector<descent::half>> values;
  for (std::uint64_t t = 1; t <= 12; ++t) {
    x.new_gradients(t);
    if (t == 6) x.gradient_of(1, 30) = descent::half(std::numeric_limits<float>::infinity());
    x.send_gradients();
    step();
    values.push_back(x.device_value.get(x.s));
  }
  return values;
}

std::vector<test::tensor> const model{{4096 + 20}, {31, 0, 1, 2}};

}  // namespace

TEST_CASE(
    "a captured step, replayed, follows its schedules and skips an overflow as the eager one, bit "
    "for bit") {
  test::stream s;
  test::tensors<descent::half> eager_data{model, s}, graph_data{model, s};
  auto eager = make(eager_data, s), captured = make(graph_data, s);
  test::graph const recorded(s, [&] { captured.step(); });
  CHECK(recorded.nodes == 3);

  auto const expected = train(eager_data, [&] { eager.step(); });
  auto const replayed = train(graph_data, [&] { recorded.launch(s); });
  for (std::size_t t = 0; t < expected.size(); ++t) {
    CAPTURE(t);
    CHECK(std::memcmp(expected[t].data(), replayed[t].data(),
                      expected[t].size() * sizeof(descent::half)) == 0);
  }
  CHECK(std::memcmp(expected[4].data(), expected[5].data(),
                    expected[4].size() * sizeof(descent::half)) == 0);
  CHECK(std::memcmp(expected[5].data(), expected[6].data(),
                    expected[4].size() * sizeof(descent::half)) != 0);

  auto const a = eager.report(), b = captured.report();
  CHECK(b.step == 11);
  CHECK(b.skipped == 1);
  CHECK(a.learning_rate == b.learning_rate);
  CHECK(b.learning_rate == doctest::Approx(rate(10)));
  CHECK(a.grad_norm == b.grad_norm);
}

TEST_CASE(
    "a captured step keeps the groups of its capture, an eager one between replays moves on from "
    "there") {
  test::stream s;
  test::tensors<descent::half> x{model, s}, y{model, s};
  auto eager = make(x, s), mixed = make(y, s);
  test::graph const recorded(s, [&] { mixed.step(); });
  auto const expected = train(x, [&] { eager.step(); });
  int call = 0;
  auto const both_ways = train(y, [&] { call++ % 3 == 1 ? mixed.step() : recorded.launch(s); });
  CHECK(std::memcmp(expected[11].data(), both_ways[11].data(),
                    expected[11].size() * sizeof(descent::half)) == 0);
}

TEST_CASE("zero_grad can be captured with the step") {
  test::stream s;
  test::tensors<descent::half> x{model, s};
  auto opt = make(x, s);
  test::graph const recorded(s, [&] { opt.step(), opt.zero_grad(); });
  CHECK(recorded.nodes == 4);
  recorded.launch(s);
  auto const g = x.device_gradient.get(s);
  CHECK(std::count_if(g.begin(), g.end(), [](descent::half v) { return test::number(v) == 0; }) ==
        4096 + 20 + 31);
}

TEST_CASE("what waits for the stream throws during a capture and leaves the capture alone") {
  test::stream s;
  test::tensors<descent::half> x{model, s};
  auto opt = make(x, s);
  test::graph const recorded(s, [&] {
    opt.step();
    auto const refuses = [](std::string const& name, auto call) {
      auto const sentence =
          name + " waits for the stream, which is capturing: call it after the graph has run";
      CHECK_THROWS_WITH_AS(call(), sentence.c_str(), std::logic_error);
    };
    refuses("report()", [&] { opt.report(); });
    refuses("gradient_norm()", [&] { opt.gradient_norm(); });
    refuses("diagnose()", [&] { opt.diagnose(); });
    refuses("loss_scale()", [&] { opt.loss_scale(); });
    refuses("the constructor", [&] { make(x, s); });
  });
  CHECK(recorded.nodes == 3);
  recorded.launch(s);
  CHECK(opt.report().step == 1);
}

TEST_CASE("step() and zero_grad() allocate nothing, copy nothing and wait for nothing") {
  test::stream s;
  test::tensors<descent::half> x{model, s};
  auto opt = make(x, s);
  s.wait();
  if (test::in_software()) cudasim_reset_counters();
  for (int t = 0; t < 3; ++t) {
    opt.group(0).beta1 = 0.8 + 0.01 * t;
    opt.step();
    opt.zero_grad();
  }
  auto const none = [](auto... what) {
    for (std::string const name : {what...}) {
      CAPTURE(name);
      CHECK(cudasim_count(name.c_str()) == 0);
    }
  };
  if (test::in_software()) none("allocations", "frees", "synchronisations", "queries");
  s.wait();  // copies and launches count when they are done
  if (test::in_software()) {
    none("memcpys", "memsets");
    CHECK(cudasim_count("launches") == 3 * 5);
  }
  CHECK(opt.report().step == 3);
}

TEST_CASE(
    "optimizers on streams of their own do not wait for each other, nor for the default stream") {
  test::stream first, second;
  test::tensors<descent::half> x{model, first}, y{model, second};
  auto a = make(x, first), b = make(y, second);
  for (std::uint64_t t = 1; t <= 3; ++t) {
    x.new_gradients(t), x.send_gradients();
    y.new_gradients(t), y.send_gradients();
    a.step(), b.step();
  }
  auto const p = x.device_value.get(first), q = y.device_value.get(second);
  CHECK(std::memcmp(p.data(), q.data(), p.size() * sizeof(descent::half)) == 0);
}

TEST_CASE("a captured whole step: the loss scale moves, the average follows, gradients become zero, bit for bit") {
  test::stream s;
  test::tensors<descent::half> x{model, s}, y{model, s};
  auto const make = [&](auto& data) {
    return descent::optimizer{data.on_device(),
                              descent::adamw{},
                              descent::learning_rate(rate),
                              descent::master<float>{},
                              descent::dynamic_loss_scale{.init = 16, .interval = 3},
                              descent::clip_norm{1},
                              descent::ema{.decay = 0.9, .start = 2},
                              descent::lookahead{.k = 3},
                              descent::zero_grad{},
                              descent::cuda{s}};
  };
  auto eager = make(x), captured = make(y);
  test::graph const recorded(s, [&] { captured.step(); });
  CHECK(recorded.nodes == 3);
  auto const expected = train(x, [&] { eager.step(); });
  auto const replayed = train(y, [&] { recorded.launch(s); });
  for (std::size_t t = 0; t < expected.size(); ++t)
    CHECK(std::memcmp(expected[t].data(), replayed[t].data(), expected[t].size() * sizeof(descent::half)) == 0);
  auto const average = [&](auto& opt) { return test::from_device(opt.average("w0").data(), 4096 + 20, s); };
  CHECK(average(eager) == average(captured));
  CHECK(x.device_gradient.get(s).size() == y.device_gradient.get(s).size());
  auto const a = eager.report(), b = captured.report();
  CHECK(a.loss_scale == b.loss_scale);
  CHECK(b.loss_scale == 16 * 2 * 0.5 * 2 * 2);  // grown after calls 3, 9 and 12, backed off at 6
  CHECK(b.skipped == 1);
}

TEST_CASE("many replays of the whole step skip what overflows now and then, and end at the eager bits") {
  std::uint64_t const steps = test::in_software() ? 200 : 1000, overflow_in = steps / 25;
  test::stream s;
  std::vector<test::tensor> const small{{300}, {31, 0, 1, 2}};
  test::tensors<descent::half> x{small, s}, y{small, s};
  auto const make = [&](auto& data) {
    return descent::optimizer{data.on_device(),
                              descent::adamw{},
                              descent::learning_rate(descent::cosine{.peak = 1e-2, .steps = std::int64_t(steps)}),
                              descent::master<float>{},
                              descent::dynamic_loss_scale{.init = 16, .interval = 5},
                              descent::clip_norm{1},
                              descent::ema{.decay = 0.99},
                              descent::zero_grad{},
                              descent::cuda{s}};
  };
  auto eager = make(x), captured = make(y);
  test::graph const recorded(s, [&] { captured.step(); });
  int overflows = 0;
  for (std::uint64_t t = 1; t <= steps; ++t) {
    bool const overflow = t * 2654435761 % 4294967296 < 4294967296 / overflow_in;
    overflows += overflow;
    for (auto* data : {&x, &y}) {
      data->new_gradients(t);
      if (overflow) data->gradient_of(1, 30) = descent::half(std::numeric_limits<float>::infinity());
      data->send_gradients();
    }
    eager.step();
    recorded.launch(s);
  }
  auto const of = [&](auto& opt) {
    auto const r = opt.report();
    return std::tuple{test::from_device(opt.master("w0").data(), 300, s),
                      test::from_device(opt.average("w0").data(), 300, s), r.loss_scale, r.skipped, r.step};
  };
  CHECK(of(eager) == of(captured));
  auto const a = x.device_value.get(s), b = y.device_value.get(s);
  CHECK(std::memcmp(a.data(), b.data(), a.size() * sizeof(descent::half)) == 0);
  CHECK(overflows > 10);
  CHECK(captured.report().skipped >= overflows);  // a scale that has grown may overflow, too
  CHECK(captured.report().step + captured.report().skipped == std::int64_t(steps));
}

TEST_CASE("accumulation, random rounding and noise go on within a captured graph") {
  test::stream s;
  test::tensors<descent::bfloat16> x{model, s}, y{model, s};
  auto const make = [&](auto& data) {
    return descent::optimizer{data.on_device(), descent::adamw{}, descent::accumulate{3}, descent::stochastic_rounding{1},
                              descent::gradient_noise{}, descent::zero_grad{}, descent::cuda{s}};
  };
  auto eager = make(x), captured = make(y);
  test::graph const recorded(s, [&] { captured.step(); });
  for (std::uint64_t t = 1; t <= 9; ++t) {
    for (auto* data : {&x, &y}) data->new_gradients(t), data->send_gradients();
    eager.step();
    recorded.launch(s);
    CHECK(captured.report().step == std::int64_t(t / 3));
    auto const a = x.device_value.get(s), b = y.device_value.get(s);
    CHECK(std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
  }
}

TEST_CASE("what the host changes in a group reaches a captured graph by commit_groups") {
  test::stream s;
  test::tensors<float> x{model, s}, y{model, s};
  auto const make = [&](auto& data) {
    return descent::optimizer{data.on_device(), descent::adamw{}, descent::cuda{s}};
  };
  auto eager = make(x), captured = make(y);
  test::graph const recorded(s, [&] { captured.step(); });
  for (int t = 0; t < 4; ++t) {
    for (auto* opt : {&eager, &captured}) opt->group(0).lr = 0.5 * t, opt->freeze(0, t == 2);
    eager.step();
    captured.commit_groups();
    recorded.launch(s);
    CHECK(x.device_value.get(s) == y.device_value.get(s));
  }
}

TEST_CASE("one loss scale for two optimizers, captured with its update") {
  test::stream s;
  test::tensors<float> x{model, s}, y{model, s};
  descent::loss_scaler scaler{descent::dynamic_loss_scale{.init = 4, .interval = 2}, descent::cuda{s}};
  descent::optimizer a{x.on_device(), descent::adamw{}, descent::shared_loss_scale{scaler}, descent::cuda{s}};
  descent::optimizer b{y.on_device(), descent::sgd{}, descent::shared_loss_scale{scaler}, descent::cuda{s}};
  test::graph const recorded(s, [&] { a.step(), b.step(), scaler.update(); });
  CHECK(recorded.nodes == 7);
  for (float const expected : {4.f, 8.f, 8.f, 16.f}) {
    recorded.launch(s);
    CHECK(test::from_device(scaler.loss_scale_pointer(), 1, s)[0] == expected);
  }
  x.gradient_of(0, 7) = std::numeric_limits<float>::quiet_NaN();
  x.send_gradients();
  recorded.launch(s);
  CHECK(scaler.loss_scale() == 8);
  CHECK(a.report().skipped == 1);
  CHECK(b.report().step == 5);
}
