// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Steps in captured graphs: what a replay does, what a capture refuses, and what a step never does.
#include "support.cuh"

#include <descent/any_optimizer.hpp>
#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/training/loss_scaler.hpp>

#include <cstring>
#include <stdexcept>

namespace {

namespace ds = descent;
using ds::half;

std::vector<test::tensor> const model{{4096 + 20}, {31, 0, 1, 2}};

auto const rate = ds::warmup<ds::cosine>{.steps = 3, .then = {.peak = 1e-2, .steps = 8}};
auto const decay = ds::linear{.from = 0, .to = 0.1, .steps = 12};

/// Calls f(rule, policies...) with what most cases train with: few optimizers, which take most of the compile time.
template <class F> auto as_usual(F const& f) {
  return f(ds::adamw{}, ds::learning_rate(rate), ds::vary<&ds::adamw::weight_decay>(decay), ds::master<float>{},
           ds::clip_norm{1});
}
auto make(test::tensors<half>& x) {
  return as_usual([&](auto... of) { return ds::optimizer{x.on_device(), of..., ds::cuda{x.s}}; });
}
auto make_runs() {
  return as_usual([](auto... of) { return test::replayed_of<half>(model, test::one_step, of...); });
}

}  // namespace

TEST_CASE("a captured step, replayed, follows its schedules and skips an overflow as the eager one, bit for bit") {
  auto runs = make_runs();
  CHECK(runs.recorded.nodes == 3);
  for (std::uint64_t t = 1; t <= 12; ++t) {
    CAPTURE(t);
    auto const before = runs.y.device_value.get(runs.s);
    runs.step(t, t == 6 ? INFINITY : 0);
    runs.expect_same();
    if (t == 6 || t == 7) CHECK(test::same_bits(before, runs.y.device_value.get(runs.s)) == (t == 6));
  }
  auto const r = runs.captured.report();
  CHECK(r.step == 11);
  CHECK(r.skipped == 1);
  CHECK(r.learning_rate == doctest::Approx(rate(10)));
}

TEST_CASE("an eager step between replays continues from the last replay, and the next replay from it") {
  auto runs = make_runs();
  for (std::uint64_t t = 1; t <= 12; ++t) {
    runs.send(t, t == 6 ? INFINITY : 0);
    runs.eager.step();
    t % 3 == 2 ? runs.captured.step() : runs.recorded.launch(runs.s);
  }
  runs.expect_same();
}

TEST_CASE("rebind() between replays: the graph works on the new memory and leaves the old one alone") {
  auto runs = make_runs();
  runs.step(1);
  test::tensors<half> moved{{{4096 + 20, 0, 3, 0}, {31, 0, 0, 0}}, runs.s};  // other tensors are aligned than before
  auto const at_move = runs.y.device_value.get(runs.s);
  runs.y.each([&](std::size_t k, std::int64_t i) { moved.value[moved.place(k, i)] = at_move[runs.y.place(k, i)]; });
  moved.device_value.put(moved.value, runs.s);
  auto const old_list = runs.y.on_device(), list = moved.on_device();
  auto const before = ds::detail::launches;
  runs.captured.rebind(list);
  CHECK(ds::detail::launches == before + 1);
  auto const left = runs.y.device_value.get(runs.s);
  for (std::uint64_t t = 2; t <= 6; ++t) {
    runs.send(t);
    moved.each([&](std::size_t k, std::int64_t i) { moved.gradient_of(k, i) = runs.y.gradient_of(k, i); });
    moved.send_gradients();
    runs.eager.step();
    t == 4 ? runs.captured.step() : runs.recorded.launch(runs.s);
  }
  auto const want = runs.x.device_value.get(runs.s), got = moved.device_value.get(runs.s);
  int differ = 0;
  moved.each([&](std::size_t k, std::int64_t i) {
    differ += std::memcmp(&got[moved.place(k, i)], &want[runs.x.place(k, i)], sizeof(half)) != 0;
  });
  CHECK(differ == 0);
  CHECK(test::same_bits(left, runs.y.device_value.get(runs.s)));

  std::vector<half> on_host(std::size_t(list.views()[0].count));
  ds::parameters<half> wrong;
  for (auto const& v : list.views())
    wrong.add(v.name, &v == &list.views()[0] ? on_host.data() : v.value, v.gradient,
              ds::shape{v.count / v.columns, v.columns}, ds::group{v.group});
  CHECK_THROWS_AS(runs.captured.rebind(wrong), std::invalid_argument);
  runs.captured.rebind(old_list);
}

TEST_CASE("zero_grad can be captured with the step") {
  test::stream s;
  test::tensors<half> x{model, s};
  auto opt = make(x);
  test::graph const recorded(s, [&] { opt.step(), opt.zero_grad(); });
  CHECK(recorded.nodes == 4);
  recorded.launch(s);
  auto const g = x.device_gradient.get(s);
  CHECK(std::count_if(g.begin(), g.end(), [](half v) { return test::number(v) == 0; }) == 4096 + 20 + 31);
}

TEST_CASE("what waits for the stream throws during a capture and leaves the capture alone") {
  test::stream s;
  test::tensors<half> x{model, s};
  auto opt = make(x);
  test::graph const recorded(s, [&] {
    opt.step();
    auto const refuses = [](std::string const& name, auto call) {
      auto const sentence = name + " waits for the stream, which is capturing: call it after the graph has run";
      CHECK_THROWS_WITH_AS(call(), sentence.c_str(), std::logic_error);
    };
    refuses("report()", [&] { opt.report(); });
    refuses("gradient_norm()", [&] { opt.gradient_norm(); });
    refuses("diagnose()", [&] { opt.diagnose(); });
    refuses("loss_scale()", [&] { opt.loss_scale(); });
    refuses("the constructor", [&] { make(x); });
  });
  CHECK(recorded.nodes == 3);
  recorded.launch(s);
  CHECK(opt.report().step == 1);
}

TEST_CASE("step() and zero_grad() allocate nothing, copy nothing and wait for nothing") {
  test::stream s;
  test::tensors<half> x{model, s};
  auto opt = make(x);
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

TEST_CASE("optimizers on two streams do not disturb each other") {
  test::stream first, second;
  test::tensors<half> x{model, first}, y{model, second};
  auto a = make(x), b = make(y);
  for (std::uint64_t t = 1; t <= 3; ++t) {
    x.new_gradients(t), x.send_gradients();
    y.new_gradients(t), y.send_gradients();
    a.step(), b.step();
  }
  CHECK(test::same_bits(x.device_value.get(first), y.device_value.get(second)));
}

TEST_CASE("step(stream): steps on several streams equal those on one, in order with all other work") {
  test::stream own, first, second;
  test::tensors<half> x{model, own}, y{model, own};
  auto a = make(x);
  descent::any_optimizer b{make(y)};
  for (std::uint64_t t = 1; t <= 6; ++t) {
    test::stream const& s = t % 3 == 0 ? own : t % 3 == 1 ? first : second;
    x.new_gradients(t), y.new_gradients(t);
    x.send_gradients(), own.wait();
    y.device_gradient.put(y.gradient, s);  // its order after the step before is that of the optimizer's stream
    a.group(0).lr = 0.01 * double(t), b.set(0, "lr", 0.01 * double(t));
    a.step(), b.step(cudaStream_t(s));
    CHECK(a.report().grad_norm == b.report().grad_norm);
  }
  CHECK(a.report().step == 6);
  CHECK_THROWS_AS(b.step(&a), std::logic_error);  // another pointer
  CHECK(test::same_bits(x.device_value.get(own), y.device_value.get(own)));
}

TEST_CASE("step(stream): a step is captured on another stream, and joins a capture of the optimizer's") {
  test::stream own, other;
  test::tensors<half> x{model, own}, y{model, own}, z{model, own};
  auto eager = make(x), elsewhere = make(y), forked = make(z);
  own.wait();
  test::graph const on_other(other, [&] { elsewhere.step(other); });
  test::graph const on_own(own, [&] { forked.step(other), forked.zero_grad(); });
  for (std::uint64_t t = 1; t <= 3; ++t) {
    for (auto* data : {&x, &y, &z}) data->new_gradients(t), data->send_gradients();
    eager.step();
    own.wait();
    on_other.launch(other), other.wait();
    on_own.launch(own);
  }
  CHECK(test::same_bits(x.device_value.get(own), y.device_value.get(own)));
  CHECK(test::same_bits(x.device_value.get(own), z.device_value.get(own)));
  CHECK(forked.report().step == 3);
  auto const gradient = z.device_gradient.get(own);
  CHECK(test::number(gradient[z.place(0, 0)]) == 0);
}

TEST_CASE("many replays of the whole step skip occasional overflows and end with the bits of eager steps") {
  std::uint64_t const steps = test::in_software() ? 200 : 1000, overflow_in = steps / 25;
  auto runs =
      test::replayed_of<half>({{300}, {31, 0, 1, 2}}, test::one_step, ds::adamw{},
                              ds::learning_rate(ds::cosine{.peak = 1e-2, .steps = std::int64_t(steps)}),
                              ds::master<float>{}, ds::dynamic_loss_scale{.init = 16, .interval = 5}, ds::clip_norm{1},
                              ds::ema{.decay = 0.99, .start = 2}, ds::ema_nesterov{.momentum = 0.9}, ds::zero_grad{});
  CHECK(runs.recorded.nodes == 3);
  int overflows = 0;
  for (std::uint64_t t = 1; t <= steps; ++t) {
    bool const overflow = t * 2654435761 % 4294967296 < 4294967296 / overflow_in;
    overflows += overflow;
    runs.step(t, overflow ? INFINITY : 0);
    if (t <= 12) runs.expect_same();
  }
  runs.expect_same();
  auto const r = runs.captured.report();
  CHECK(overflows > 10);
  CHECK(r.skipped >= overflows);  // a scale that has grown may overflow, too
  CHECK(r.step + r.skipped == std::int64_t(steps));
}

TEST_CASE("accumulation, random rounding and noise advance within a captured graph") {
  auto runs = test::replayed_of<ds::bfloat16>(model, test::one_step, ds::adamw{}, ds::accumulate{3},
                                              ds::stochastic_rounding{1}, ds::gradient_noise{}, ds::zero_grad{});
  for (std::uint64_t t = 1; t <= 9; ++t) {
    runs.step(t);
    CHECK(runs.captured.report().step == std::int64_t(t / 3));
    runs.expect_same();
  }
}

TEST_CASE("what the host changes in a group reaches a captured graph by commit_groups") {
  auto runs = test::replayed_of<float>(model, test::one_step, ds::adamw{});
  for (int t = 0; t < 4; ++t) {
    for (auto* opt : {&runs.eager, &runs.captured}) opt->group(0).lr = 0.5 * t, opt->freeze(0, t == 2);
    runs.captured.commit_groups();
    runs.step(std::uint64_t(t + 1));
    runs.expect_same();
  }
}

TEST_CASE("one loss scale for two optimizers, captured with its update") {
  test::stream s;
  test::tensors<float> x{model, s}, y{model, s};
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 4, .interval = 2}, ds::cuda{s}};
  ds::optimizer a{x.on_device(), ds::adamw{}, ds::shared_loss_scale{scaler}, ds::cuda{s}};
  ds::optimizer b{y.on_device(), ds::sgd{}, ds::shared_loss_scale{scaler}, ds::cuda{s}};
  test::graph const recorded(s, [&] { a.step(), b.step(), scaler.update(); });
  CHECK(recorded.nodes == 7);
  for (float const expected : {4.f, 8.f, 8.f, 16.f}) {
    recorded.launch(s);
    CHECK(test::from_device(scaler.loss_scale_pointer(), 1, s)[0] == expected);
  }
  x.gradient_of(0, 7) = NAN;
  x.send_gradients();
  recorded.launch(s);
  CHECK(scaler.loss_scale() == 8);
  CHECK(a.report().skipped == 1);
  CHECK(b.report().step == 5);
}
