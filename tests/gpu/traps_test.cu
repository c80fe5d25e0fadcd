// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Known traps (optimizer/traps_test.cpp) that need a device: what a captured graph freezes or omits.
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

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

std::vector<test::tensor> const model{{4096 + 20}, {31, 0, 1, 2}, {0}, {8}};

/// Calls f(rule, policies...) with everything that changes from step to step.
template <class F> auto with_everything(F const& f) {
  return f(descent::adamw{},
           descent::learning_rate(descent::warmup<descent::cosine>{.steps = 3, .then = {.peak = 1e-2, .steps = 15}}),
           descent::vary<&descent::adamw::weight_decay>(descent::linear{.from = 0, .to = 0.1, .steps = 12}),
           descent::dynamic_loss_scale{.init = 16, .interval = 3}, descent::clip_norm{1},
           descent::gradient_noise{.eta = 0.01}, descent::stochastic_rounding{4}, descent::lookahead{.k = 4},
           descent::ema{.decay = 0.9, .start = 5, .bias_corrected = true}, descent::zero_grad{});
}
auto make(test::tensors<bfloat16>& x) {
  return with_everything([&](auto... of) { return descent::optimizer{x.on_device(), of..., descent::cuda{x.s}}; });
}

}  // namespace

TEST_CASE("trap 21: a step that was captured once and replayed 20 times is the eager one, bit for bit") {
  auto runs = with_everything([](auto... of) { return test::replayed_of<bfloat16>(model, test::one_step, of...); });
  CHECK(runs.captured.report().step == 0);  // a capture takes no step
  std::set<double> rates, scales;
  for (std::uint64_t t = 1; t <= 20; ++t) {
    CAPTURE(t);
    runs.step(t, t % 7 == 0 ? INFINITY : 0);
    runs.expect_same();
    auto const r = runs.captured.report();
    rates.insert(r.learning_rate);
    scales.insert(r.loss_scale);
  }
  CHECK(runs.captured.report().step == 18);
  CHECK(rates.size() >= 15);
  CHECK(scales.size() >= 3);
}

TEST_CASE("trap 23: looking at the last report between begin and end breaks no capture") {
  test::stream s;
  test::tensors<bfloat16> x{model, s};
  auto opt = make(x);
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
  auto opt = make(x);
  std::atomic<bool> done = false;
  std::atomic<std::int64_t> looks = 0;
  bool backwards = false;
  std::thread monitor([&] {
    for (std::int64_t last = 0; !done; ++looks) {
      auto const r = opt.last_report();
      backwards |= r.step < last;
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
  CHECK(!backwards);
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

TEST_CASE("traps 2 and 3: step, state, masters and a rule's memory are restored on the device, bit for bit") {
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
    CHECK(saved.size() == 5 * 3 + 3);  // four states and a master of each tensor with elements; made_by, memory, step
    auto const& by = saved.at("made_by");
    CHECK(std::string(by.begin(), by.end()) == "prodigy, state float, master float");  // nothing about the backend
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
  CHECK(test::same_bits(x.device_value.get(s), y.device_value.get(s)));
  CHECK(second.report().step == 8);
  CHECK(before > 1e-3);
  CHECK(distance() > before);  // so the sums had an effect
}
