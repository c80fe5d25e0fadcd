// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Known traps (machine/traps_test.cpp) that need a device: what a captured graph freezes or leaves out.
#include "support.cuh"

#include <descent/average.hpp>
#include <descent/clip.hpp>
#include <descent/cuda.cuh>
#include <descent/loss_scale.hpp>
#include <descent/noise.hpp>
#include <descent/optimizer.hpp>
#include <descent/rounding.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/linear.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/storage.hpp>
#include <descent/vary.hpp>
#include <descent/zero_grad.hpp>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using descent::bfloat16;

/// Everything that changes from step to step, in one optimizer.
auto make(test::tensors<bfloat16>& x, test::stream const& s) {
  return descent::optimizer{
      x.on_device(),
      descent::adamw{},
      descent::learning_rate(descent::warmup<descent::cosine>{.steps = 3, .then = {.peak = 1e-2, .steps = 15}}),
      descent::vary<&descent::adamw::weight_decay>(descent::linear{.from = 0, .to = 0.1, .steps = 12}),
      descent::dynamic_loss_scale{.init = 16, .interval = 3},
      descent::clip_norm{1},
      descent::gradient_noise{.eta = 0.01},
      descent::stochastic_rounding{4},
      descent::lookahead{.k = 4},
      descent::ema{.decay = 0.9, .start = 5, .bias_corrected = true},
      descent::zero_grad{},
      descent::cuda{s}};
}

std::vector<test::tensor> const model{{4096 + 20}, {31, 0, 1, 2}, {0}, {8}};

template <class T> bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace

TEST_CASE("trap 21: a step that was captured once and replayed 20 times is the eager one, bit for bit") {
  test::stream s;
  test::tensors<bfloat16> x{model, s}, y{model, s};
  auto eager = make(x, s), captured = make(y, s);
  test::graph const recorded(s, [&] { captured.step(); });
  CHECK(captured.report().step == 0);  // a capture takes no step
  std::vector<double> rates, scales;
  for (std::uint64_t t = 1; t <= 20; ++t) {
    CAPTURE(t);
    auto const send = [&](auto& data) {
      data.new_gradients(t);
      if (t % 7 == 0) data.gradient_of(1, 30) = bfloat16(INFINITY);
      data.send_gradients();
    };
    send(x), send(y);
    eager.step();
    recorded.launch(s);
    CHECK(same_bits(x.device_value.get(s), y.device_value.get(s)));
    CHECK(same_bits(x.device_gradient.get(s), y.device_gradient.get(s)));
    auto const a = eager.report(), b = captured.report();
    CHECK(a.step == b.step);
    CHECK(a.applied == b.applied);
    CHECK(a.loss_scale == b.loss_scale);
    CHECK(a.learning_rate == b.learning_rate);
    CHECK(a.clip_factor == b.clip_factor);
    rates.push_back(b.learning_rate);
    scales.push_back(b.loss_scale);
  }
  CHECK(captured.report().step == 18);
  CHECK(std::set<double>(rates.begin(), rates.end()).size() >= 15);
  CHECK(std::set<double>(scales.begin(), scales.end()).size() >= 3);
  for (auto name : {"w0", "w1", "w3"}) {
    auto const average = [&](auto const& opt) {
      auto const e = opt.average(name);
      return test::from_device(e.data(), e.size(), s);
    };
    CHECK(same_bits(average(eager), average(captured)));
  }
}

TEST_CASE("trap 21: a rate that was changed by hand reaches a graph that was captured before") {
  test::stream s;
  test::tensors<float> x{{{100}}, s};
  descent::optimizer opt{x.on_device(), descent::sgd{.lr = 0.5}, descent::cuda{s}};
  test::graph const recorded(s, [&] { opt.step(); });
  auto before = x.device_value.get(s);
  for (double rate : {0.5, 0.25, 0.0}) {
    opt.group(0).lr = rate;
    opt.commit_groups();
    recorded.launch(s);
    auto const after = x.device_value.get(s);
    auto const at = std::size_t(&x.value_of(0, 0) - x.value.data());
    for (std::size_t i = at; i < at + 100; ++i) CHECK_UNARY(after[i] == before[i] - float(rate) * x.gradient[i]);
    before = after;
  }
}

TEST_CASE("trap 22: a parameter whose gradient is not there yet is refused before anything can be captured") {
  test::stream s;
  test::tensors<float> x{{{100}}, s};
  auto params = x.on_device();
  CHECK_THROWS_WITH_AS(params.add("late", x.device_value.data(), static_cast<float*>(nullptr), 4),
                       "parameter 'late': gradient is null, but count is 4", std::invalid_argument);
  if (!test::host_memory_is_out_of_reach()) return;
  std::vector<float> on_host(4);
  params.add("host", x.device_value.data(), on_host.data(), 4);
  CHECK_THROWS_AS((descent::optimizer{params, descent::sgd{}, descent::cuda{s}}), std::invalid_argument);
}

TEST_CASE("trap 23: looking at the last report between begin and end breaks no capture") {
  test::stream s;
  test::tensors<bfloat16> x{model, s};
  auto opt = make(x, s);
  for (int n = 1; n <= 20; ++n) {
    test::graph const recorded(s, [&] {
      CHECK_UNARY(opt.last_report().step <= n - 1);
      opt.step();
      CHECK_UNARY(opt.last_report().step <= n - 1);
      CHECK_THROWS_AS(opt.report(), std::logic_error);
    });
    recorded.launch(s);
    CHECK_UNARY(opt.report().step + opt.report().skipped == n);
  }
}

TEST_CASE("trap 23: a thread that watches the last report breaks no capture") {
  test::stream s;
  test::tensors<bfloat16> x{model, s};
  auto opt = make(x, s);
  std::atomic<bool> done = false;
  std::atomic<std::int64_t> looks = 0;
  std::thread monitor([&] {
    for (std::int64_t last = 0; !done; ++looks) {
      auto const r = opt.last_report();
      if (r.step < last) break;  // never backwards
      last = r.step;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int n = 1; n <= 1000; ++n) {
    test::graph const recorded(s, [&] { opt.step(); });
    if (n % 100 == 0) recorded.launch(s), s.wait();
    while (n == 1 && looks == 0) std::this_thread::yield();  // the monitor has begun
  }
  done = true;
  monitor.join();
  CHECK(opt.report().step + opt.report().skipped == 10);
}

TEST_CASE("trap 23: a host that is interrupted while it reads the last report gets no mixture of two") {
  descent::detail::late_report late;
  std::atomic<bool> done = false;
  std::thread device([&] {  // much faster than one
    descent::control_block c;
    for (c.calls = 1; !done; ++c.calls) {
      late.complete_until(c.calls - 1);
      c.step = c.calls, c.sweep = double(c.calls);
      late.of(c.calls) = c;
    }
  });
  int mixed = 0;
  std::int64_t last = 0;
  while (last < 10'000'000) {
    auto const c = descent::detail::newest(late);
    mixed += c.calls < last || c.step != c.calls || (c.calls && c.sweep != double(c.calls));
    last = c.calls;
  }
  done = true;
  device.join();
  CHECK(mixed == 0);
}

TEST_CASE("traps 2 and 3: step and state are put back on the device, and a run goes on from there to the bit") {
  test::stream s;
  test::tensors<float> x{model, s}, y{model, s};
  descent::optimizer first{x.on_device(), descent::lamb{}, descent::cuda{s}};
  for (int t = 1; t <= 3; ++t) x.new_gradients(std::uint64_t(t)), x.send_gradients(), first.step();
  y.device_value.put(x.device_value.get(s), s);
  descent::optimizer second{y.on_device(), descent::lamb{}, descent::cuda{s}};
  for (std::size_t k = 0; k < model.size(); ++k) {
    second.set_state<0>(x.name(k), first.state<0>(x.name(k)));
    second.set_state<1>(x.name(k), first.state<1>(x.name(k)));
  }
  second.set_step(first.report().step);
  for (int t = 4; t <= 6; ++t) {
    for (auto* data : {&x, &y}) data->new_gradients(std::uint64_t(t)), data->send_gradients();
    first.step(), second.step();
  }
  CHECK(x.device_value.get(s) == y.device_value.get(s));
  CHECK(second.report().step == 6);
}

TEST_CASE("trap 3: masters and what a rule remembers are put back on the device, for the sums of the next step, too") {
  using descent::half;
  test::stream s;
  test::tensors<half> x{model, s}, y{model, s};
  auto const make = [&](auto& data) {
    return descent::optimizer{data.on_device(), descent::prodigy{.d0 = 1e-3}, descent::master<float>{},
                              descent::cuda{s}};
  };
  auto first = make(x);
  for (int t = 1; t <= 5; ++t) x.new_gradients(1), x.send_gradients(), first.step();
  y.device_value.put(x.device_value.get(s), s);
  auto second = make(y);
  SUBCASE("piece by piece, from the device") {
    second.set_step(first.report().step);
    for (std::size_t k = 0; k < model.size(); ++k) {
      second.set_master(x.name(k), first.master(x.name(k)));
      second.set_state<0>(x.name(k), first.state<0>(x.name(k)));
      second.set_state<1>(x.name(k), first.state<1>(x.name(k)));
      second.set_state<2>(x.name(k), first.state<2>(x.name(k)));
      second.set_state<3>(x.name(k), first.state<3>(x.name(k)));
    }
    second.set_rule_memory(first.rule_memory());
  }
  SUBCASE("as a whole, by way of the host") {
    std::map<std::string, std::vector<char>> saved;
    first.save([&](std::string const& name, auto piece) {
      auto& bytes = saved[name];
      bytes.resize(piece.size_bytes());
      test::cuda(cudaMemcpy(bytes.data(), piece.data(), bytes.size(), cudaMemcpyDefault));
    });
    CHECK(saved.size() == 5 * 3 + 2);  // four states and a master of each tensor with elements; memory, step
    second.load([&]<class T>(std::string const& name, std::span<T const> piece) {
      std::vector<T> numbers(piece.size());
      std::memcpy(static_cast<void*>(numbers.data()), saved.at(name).data(), piece.size_bytes());
      return numbers;
    });
  }
  auto const distance = [&] {
    descent::prodigy::memory memory;
    cudaMemcpyAsync(&memory, first.rule_memory().data(), sizeof memory, cudaMemcpyDefault, s);
    s.wait();
    return memory.d;
  };
  double const before = distance();
  for (int t = 6; t <= 8; ++t) {
    for (auto* data : {&x, &y}) data->new_gradients(1), data->send_gradients();
    first.step(), second.step();
  }
  CHECK(same_bits(x.device_value.get(s), y.device_value.get(s)));
  CHECK(before > 1e-3);
  CHECK(distance() > before);  // so that the sums mattered
}
