// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Between chunks, the passes of a step share only what they read: a system of plain threads gives the bits of one
// thread, and the thread sanitizer finds nothing.
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#include "support/child.hpp"

#include <cstdint>
#include <limits>
#include <thread>
#include <vector>
#if defined(_OPENMP)
#include <omp.h>
#endif

namespace ds = descent;

namespace {

/// Assigns chunks to threads in turn.
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

#if defined(_OPENMP)
/// omp that never falls back to one thread.
struct team {
  static constexpr char const* name() { return "team"; }
  static void each(std::int64_t n, ds::detail::loop_body f) { ds::omp::in_team(n, f); }
};
#endif

}  // namespace

#if defined(_OPENMP) && !defined(DESCENT_THREAD_SANITIZER)
TEST_CASE("in a child of fork() steps end, with the bits of the parent's team") {
  auto const step = [] { return train<float, float, team>(ds::adamw{.lr = 0.1}, ds::clip_norm{1}); };
  auto const here = step();
  CHECK(test::in_child([&] { return step() == here && test::in_child([&] { return step() == here; }) == 0; }) == 0);
  CHECK(step() == here);
}
#endif

TEST_CASE("threads agree with one thread") {
  agree<float, float>(ds::adamw{}, ds::clip_norm{1}, ds::ema{}, ds::lookahead{.k = 2}, ds::zero_grad{});
  agree<ds::half, ds::half>(ds::lamb{}, ds::master<float>{}, ds::dynamic_loss_scale{.init = 4}, ds::clip_adaptive{});
  agree<ds::bfloat16, ds::bfloat16>(ds::dog{}, ds::stochastic_rounding{1}, ds::gradient_noise{}, ds::skip_nonfinite{});
  agree<ds::bfloat16, float>(ds::sgd{.momentum = 0.5}, ds::master_remainder{},
                             ds::clip<ds::norm::inf, ds::scope::group>{0.1});
}

TEST_CASE("a team that loses time is left alone for eight times as long, and one that keeps up is not") {
  auto const loops_alone = [](ds::detail::team_record record) {
    int n = 0;
    while (record.alone()) ++n;
    return n;
  };
  CHECK(loops_alone({}) == 0);
  CHECK(loops_alone({1.0, 1.0, 2}) == 0);    // half of the time of one thread
  CHECK(loops_alone({2.0, 1.0, 2}) == 0);    // the time of one thread
  CHECK(loops_alone({3.0, 1.0, 2}) == 4);    // lost: the time of half a loop of one thread
  CHECK(loops_alone({66.0, 0.25, 8}) == 256);  // lost: the time of 32 loops
  CHECK(loops_alone({1.0, 0.0, 2}) == 0);    // a share too short for the clock
}

TEST_CASE("what transform_gradients(f) throws comes out of the loop, and the gradients are what they were") {
  constexpr std::size_t n = 70'000;
  std::vector<float> w(n, 0.5f), g(n);
  for (std::size_t i = 0; i < n; ++i) g[i] = float(i) / 7;
  ds::parameters<float> params;
  params.add("a", w.data(), g.data(), n - 777);
  params.add("b", w.data() + n - 777, g.data() + n - 777, 777);
  auto const check = [&]<class System>(System) {
    ds::optimizer opt{params, ds::sgd{}, ds::dynamic_loss_scale{.init = 8}, ds::host<System>{}};
    auto const before = g;
    auto const throws = [](float x) { return x * 8 == 50'000.f / 7 ? throw 1 : x + 1; };
    CHECK_THROWS_AS(opt.transform_gradients(throws), int);
    CHECK(g == before);
    opt.transform_gradients([](float x) noexcept { return x + x; });
    CHECK(g[1] == 2 * before[1]);
    opt.transform_gradients([](float x) { return x / 2; });
    CHECK(g == before);
  };
  check(ds::cpp{});
  check(threads{});
#if defined(_OPENMP)
  check(team{});
#endif
}

#if defined(_OPENMP)
TEST_CASE("a loop of omp has each turn once, on all threads or on one, and few elements stay on the calling thread") {
  int const usual = omp_get_max_threads();
  for (int threads : {1, 3}) {
    omp_set_num_threads(threads);
    for (std::int64_t n : {0, 1, 2, 1000}) {
      std::vector<int> times(std::size_t(n), 0), by(std::size_t(n), -1);
      auto const body = [&](std::int64_t i) { ++times[std::size_t(i)], by[std::size_t(i)] = omp_get_thread_num(); };
      for (int loops = 1; loops <= 3; ++loops) {
        ds::omp::each(n, body);
        CHECK(times == std::vector<int>(std::size_t(n), loops));
      }
      ds::omp::in_team(n, body);
      CHECK(times == std::vector<int>(std::size_t(n), 4));
      if (n == 1000) CHECK(by.back() == threads - 1);
      ds::detail::each_of<team>(ds::detail::fork_worth - 1, n, body);
      CHECK(by == std::vector<int>(std::size_t(n), 0));
      ds::detail::each_of<team>(ds::detail::fork_worth, n, body);
      if (n == 1000) CHECK(by.back() == threads - 1);
    }
  }
  omp_set_num_threads(usual);
}
#endif
