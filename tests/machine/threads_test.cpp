// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The passes of a step share nothing between chunks but what they only read: a system of plain threads gives the bits of one
// thread, and the thread sanitizer finds nothing.
#include <descent/descent.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace ds = descent;

namespace {

/// Chunks dealt out to threads in turn.
struct threads {
  static constexpr char const* name() { return "threads"; }
  template <class F> static void each(std::int64_t n, F const& f) {
    std::vector<std::thread> team;
    for (std::int64_t first = 0; first < 4; ++first)
      team.emplace_back([=] {
        for (std::int64_t i = first; i < n; i += 4) f(i);
      });
    for (auto& t : team) t.join();
  }
};

template <class Value, class Gradient, class System, class Rule, class... Ps>
std::vector<float> train(Rule rule, Ps... policies) {
  constexpr std::size_t n = 70'000, tail = 777;
  std::vector<Value> w(n, Value(0.5f));
  std::vector<Gradient> g(n);
  ds::parameters<Value, Gradient> params;
  params.add("a", w.data(), g.data(), n - tail);
  params.add("b", w.data() + n - tail, g.data() + n - tail, tail, ds::group{1});
  ds::optimizer opt{params, rule, policies..., ds::host<System>{}};
  opt.group(1).lr = 0.5;
  for (int t = 1; t <= 4; ++t) {
    for (std::size_t i = 0; i < n; ++i) g[i] = Gradient(float(int(i * 37 + std::size_t(t) * 101) % 257 - 128) / 256);
    if (t == 3) g[n / 2] = Gradient(std::numeric_limits<float>::infinity());
    opt.step();
  }
  CHECK(opt.report().step == 3);
  std::vector<float> values;
  for (Value x : w) values.push_back(ds::widen<float>(x));
  return values;
}

template <class Value, class Gradient, class Rule, class... Ps> void agree(Rule rule, Ps... policies) {
  CHECK(train<Value, Gradient, threads>(rule, policies...) == train<Value, Gradient, ds::cpp>(rule, policies...));
}

}  // namespace

TEST_CASE("threads agree with one thread") {
  agree<float, float>(ds::adamw{}, ds::clip_norm{1}, ds::ema{}, ds::lookahead{.k = 2}, ds::zero_grad{});
  agree<ds::half, ds::half>(ds::lamb{}, ds::master<float>{}, ds::dynamic_loss_scale{.init = 4}, ds::clip_adaptive{});
  agree<ds::bfloat16, ds::bfloat16>(ds::dog{}, ds::stochastic_rounding{1}, ds::gradient_noise{}, ds::skip_nonfinite{});
  agree<ds::bfloat16, float>(ds::sgd{.momentum = 0.5}, ds::master_remainder{}, ds::clip<ds::norm::inf, ds::scope::group>{0.1});
}
