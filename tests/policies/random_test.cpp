// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Laws of the policies that draw random numbers, and of the master that consists of a value and its remainder.
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/noise.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#include "support/problem.hpp"
#include "support/sizes.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

using namespace test;
namespace ds = descent;
using ds::half, ds::bfloat16;

namespace {

struct moments {
  double mean, deviation, error;  // the standard deviation of one number, and of the mean
};
moments moments_of(std::vector<double> const& x) {
  double sum = 0, squares = 0;
  for (double one : x) sum += one;
  double const n = double(x.size()), mean = sum / n;
  for (double one : x) squares += (one - mean) * (one - mean);
  double const deviation = std::sqrt(squares / (n - 1));
  return {mean, deviation, deviation / std::sqrt(n)};
}

/// n parameters with the same value and the same gradient.
template <class Value> struct alike {
  std::vector<Value> value;
  std::vector<float> gradient;
  ds::parameters<Value, float> params;
  alike(std::size_t n, float v, float g) : value(n, ds::narrow<Value>(v)), gradient(n, g) {
    params.add("w", value.data(), gradient.data(), n);
  }
  std::vector<double> values() const {
    std::vector<double> x;
    for (Value one : value) x.push_back(ds::widen<double>(one));
    return x;
  }
};

std::vector<std::size_t> const large{20000, 1, 2 * chunk + 1, 12345, 0, 8};  // enough for several threads

/// Runs f() with n threads.
template <class F> auto with_threads([[maybe_unused]] int n, F const& f) {
#if defined(_OPENMP)
  int const before = omp_get_max_threads();
  omp_set_num_threads(n);
  auto const result = f();
  omp_set_num_threads(before);
  return result;
#else
  return f();
#endif
}

}  // namespace

TEST_CASE("stochastic rounding is unbiased over seeds, and rounds to a neighbour") {
  // 1 - 1e-4 is between 1 and the bfloat16 below, 1 - 2^-8.
  std::vector<double> x;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    alike<bfloat16> w(33, 1, 1);
    ds::optimizer opt{w.params, ds::sgd{.lr = 1e-4}, ds::stochastic_rounding{seed}};
    opt.step();
    for (double one : w.values()) {
      CHECK_UNARY(one == 1 || one == 1 - 0x1p-8);
      x.push_back(one);
    }
  }
  auto const m = moments_of(x);
  double const p = 1e-4 / 0x1p-8;
  CHECK(std::abs(m.mean - (1 - 1e-4)) < 5 * m.error);
  CHECK(m.error < 1e-5);
  CHECK(m.deviation == doctest::Approx(0x1p-8 * std::sqrt(p * (1 - p))).epsilon(0.05));
}

TEST_CASE("bfloat16 weights of 1 with steps of 1e-4 follow their master on average, to nearest they do not move") {
  auto const train = [](auto rule, auto... policies) {
    alike<bfloat16> w(8000, 1, 0.5f);
    ds::optimizer opt{w.params, rule, policies...};
    for (int t = 0; t < 100; ++t) opt.step();
    return w.values();
  };
  auto const check = [&](auto rule) {
    alike<float> exact(1, 1, 0.5f);
    ds::optimizer master{exact.params, rule};
    for (int t = 0; t < 100; ++t) master.step();
    auto const m = moments_of(train(rule, ds::stochastic_rounding{7}));
    CHECK(exact.value[0] < 0.993f);
    CHECK(std::abs(m.mean - double(exact.value[0])) < 5 * m.error);
    CHECK(m.error < 1e-4);
    double const rounded = ds::widen<double>(ds::narrow<bfloat16>(exact.value[0]));
    auto const all = [](std::vector<double> const& x, double y) { return std::ranges::count(x, y) == std::ssize(x); };
    CHECK(all(train(rule, ds::master<float>{}), rounded));
    CHECK(all(train(rule, ds::master_remainder{}), rounded));
    CHECK(all(train(rule), 1));
  };
  check(ds::adamw{.lr = 1e-4, .weight_decay = 0});
  check(ds::sgd{.lr = 2e-4});
}

TEST_CASE("half values and states are rounded at random, each with its own numbers") {
  // Value and state move halfway between two halves: they must not round up and down together.
  alike<half> w(40000, 1, 1);
  ds::optimizer opt{w.params, ds::sgd{.lr = 0x1p-12, .momentum = 0x1p-12}, ds::states<half>{},
                    ds::stochastic_rounding{1}};
  opt.step();  // b = 1
  opt.step();  // b = 1 + 2^-12, a quarter of the way
  std::vector<double> state;
  for (half b : opt.state("w", "b")) state.push_back(ds::widen<double>(b));
  auto const value = w.values();
  auto const b = moments_of(state), p = moments_of(value);
  CHECK(std::abs(b.mean - (1 + 0x1p-12)) < 5 * b.error);
  CHECK(std::abs(p.mean - (1 - 2 * 0x1p-12)) < 5 * p.error);
  double together = 0;
  for (std::size_t i = 0; i < state.size(); ++i) together += (state[i] - b.mean) * (value[i] - p.mean);
  double const correlation = together / double(state.size()) / (b.deviation * p.deviation);
  CHECK(std::abs(correlation) < 5 / std::sqrt(double(state.size())));
}

TEST_CASE("values beside a master are the master rounded at random: without bias, and the master does not change") {
  auto const check = [](auto type, auto... states) {
    using Value = decltype(type);
    constexpr double spacing = std::is_same_v<Value, half> ? 0x1p-10 : 0x1p-7;  // from 1 to 2
    auto const numbers = [](auto const& view) { return std::vector<float>(view.begin(), view.end()); };
    problem<Value, float> p(large), q(large);
    for (auto* one : {&p, &q})
      for (auto& tensor : one->value)
        for (Value& x : tensor) x = ds::narrow<Value>(1.5f);
    auto const make = [&](auto& x, auto... rounding) {
      return ds::optimizer{x.parameters(),       ds::adamw{.lr = 1e-3}, ds::master<float>{},
                           ds::skip_nonfinite{}, ds::ema{.decay = 0.9}, states...,
                           rounding...};
    };
    auto opt = make(p, ds::stochastic_values{3});
    auto nearest = [&] {
      if constexpr (sizeof...(states) > 0) return make(q, ds::stochastic_rounding{3});
      else return make(q);
    }();
    double sum = 0, variance = 0;  // of the errors, in units of the spacing
    std::size_t strangers = 0, away = 0, count = 0;
    for (int t = 1; t <= 20; ++t) {
      p.set_gradients(t);
      for (auto& tensor : p.grad)
        for (float& g : tensor) g = std::abs(g);  // all masters of a step are equally far from a neighbour
      q.grad = p.grad;
      auto const before = p.value;
      if (t == 10) {
        p.grad[0][7] = NAN;
        opt.step();
        CHECK(same_bits(p.value, before));
        continue;
      }
      opt.step(), nearest.step();
      for (std::size_t k = 0; k < p.value.size(); ++k) {
        auto const master = numbers(opt.master(p.name(k)));
        REQUIRE(same_bits(master, numbers(nearest.master(p.name(k)))));
        REQUIRE(same_bits(numbers(opt.average(p.name(k))), numbers(nearest.average(p.name(k)))));
        for (std::size_t i = 0; i < master.size(); ++i) {
          double const x = double(master[i]), y = ds::widen<double>(p.value[k][i]);
          double const below = std::floor(x / spacing) * spacing, part = (x - below) / spacing;
          REQUIRE((x > 1 && x < 2));
          strangers += y != below && y != (part > 0 ? below + spacing : below);
          away += y != ds::widen<double>(q.value[k][i]);
          sum += (y - x) / spacing, variance += part * (1 - part), ++count;
        }
      }
    }
    CHECK(strangers == 0);
    CHECK(std::abs(sum) < 5 * std::sqrt(variance));
    CHECK(variance > 0.1 * double(count));
    CHECK(away > count / 10);
    for (std::size_t s : {0u, 1u}) {
      auto const a = opt.state("tensor0", s), b = nearest.state("tensor0", s);
      CHECK(std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
    }
  };
  check(bfloat16{});
  check(half{}, ds::states<bfloat16>{});
}

TEST_CASE("one seed gives the same bits for any number of threads and any system, another seed gives others") {
  auto const train = [](std::uint64_t seed, auto backend) {
    problem<half> p(large);
    ds::optimizer opt{p.parameters(),
                      ds::adamw{.lr = 0.01},
                      ds::states<bfloat16>{},
                      ds::master<bfloat16>{},
                      ds::gradient_noise{.eta = 0.1, .seed = seed + 1},
                      ds::stochastic_values{seed},
                      ds::lookahead{.k = 2},
                      backend};
    for (int t = 1; t <= 3; ++t) p.set_gradients(t), opt.step();
    return p.value;
  };
  auto const alone = train(1, ds::host<ds::cpp>{});
  for (int threads = 1; threads <= 8; ++threads) {
    CAPTURE(threads);
    CHECK(same_bits(with_threads(threads, [&] { return train(1, ds::host{}); }), alone));
  }
  CHECK(!same_bits(train(2, ds::host{}), alone));
}

TEST_CASE("gradient noise is normal with the stated deviation, and new at every step") {
  std::size_t const n = 100000;
  alike<double> w(n, 0, 0);
  ds::gradient_noise const noise{.eta = 0.3, .gamma = 0.55, .seed = 11};
  ds::optimizer opt{w.params, ds::sgd{.lr = 1}, noise};
  std::vector<double> before(n, 0), last(n, 0);
  for (int t = 0; t < 5; ++t) {
    opt.step();
    std::vector<double> z(n), fourth, with_last;
    double const wanted = std::sqrt(0.3 / std::pow(1 + t, 0.55));
    for (std::size_t i = 0; i < n; ++i) {
      z[i] = (before[i] - w.value[i]) / wanted;
      fourth.push_back(std::pow(z[i], 4));
      with_last.push_back(z[i] * last[i]);
    }
    auto const m = moments_of(z), k = moments_of(fourth), c = moments_of(with_last);
    CHECK(std::abs(m.mean) < 5 * m.error);
    CHECK(std::abs(m.deviation - 1) < 5 / std::sqrt(2.0 * double(n)));
    CHECK(std::abs(k.mean - 3) < 5 * k.error);
    if (t > 0) CHECK(std::abs(c.mean) < 5 * c.error);
    before = w.values();
    last = z;
  }
}

TEST_CASE("gradient noise has mean zero over seeds at one element") {
  std::vector<double> z;
  for (std::uint64_t seed = 0; seed < 8000; ++seed) {
    alike<double> w(3, 0, 0);
    ds::optimizer opt{w.params, ds::sgd{.lr = 1}, ds::gradient_noise{.eta = 1, .gamma = 0, .seed = seed}};
    opt.step();
    z.push_back(w.value[2]);
  }
  auto const m = moments_of(z);
  CHECK(std::abs(m.mean) < 5 * m.error);
  CHECK(m.deviation == doctest::Approx(1).epsilon(0.03));
}

TEST_CASE("noise and rounding depend on the element's number, not on how tensors are cut") {
  auto const train = [](std::vector<std::size_t> const& sizes, auto rule) {
    std::vector<bfloat16> value(256, ds::narrow<bfloat16>(1.f));
    std::vector<float> gradient(256, 1e-3f);
    ds::parameters<bfloat16, float> p;
    std::size_t at = 0;
    for (std::size_t n : sizes) p.add("w" + std::to_string(at), value.data() + at, gradient.data() + at, n), at += n;
    REQUIRE(at == 256);
    ds::optimizer opt{p, rule, ds::gradient_noise{.eta = 0.1}, ds::master<float>{}, ds::stochastic_values{5}};
    for (int t = 0; t < 4; ++t) opt.step();
    return value;
  };
  auto const whole = train({256}, ds::sgd{.lr = 0.1});
  CHECK(same_bits(train({64, 192}, ds::sgd{.lr = 0.1}), whole));
  CHECK(same_bits(train({128, 64, 64}, ds::sgd{.lr = 0.1}), whole));
  std::size_t same = 0;  // of the first and the second 64
  for (std::size_t i = 0; i < 64; ++i) same += std::memcmp(&whole[i], &whole[i + 64], sizeof whole[i]) == 0;
  CHECK(same < 32);
}

TEST_CASE("skipped steps draw nothing and enter no average: the run is as without them") {
  auto const train = [](bool with_bad_ones) {
    problem<bfloat16> p({100, 9});
    ds::optimizer opt{p.parameters(), ds::adamw{.lr = 0.01}, ds::gradient_noise{.eta = 0.1}, ds::stochastic_rounding{5},
                      ds::skip_nonfinite{}, ds::ema{.decay = 0.5}, ds::lookahead{.k = 1}};
    for (int t = 1; t <= 5; ++t) {
      p.set_gradients(t);
      if (with_bad_ones) {
        auto const good = p.grad;
        if (t % 2) p.grad[1][8] = ds::narrow<bfloat16>(float(NAN));
        else std::fill(p.grad[0].begin(), p.grad[0].end(), ds::narrow<bfloat16>(float(NAN)));
        opt.step();
        p.grad = good;
      }
      opt.step();
    }
    opt.swap_average();
    return p.value;
  };
  CHECK(same_bits(train(true), train(false)));
}

TEST_CASE("a value and its remainder are the float master of a thousand steps, bit for bit") {
  auto const check = [](auto rule, auto... policies) {
    problem<bfloat16, float> p({3, 0, 300, 21}), q({3, 0, 300, 21});
    ds::optimizer a{p.parameters(), rule, ds::master_remainder{}, policies...};
    ds::optimizer b{q.parameters(), rule, ds::master<float>{}, policies...};
    std::size_t wrong = 0, negative = 0, not_rounded = 0;
    for (int t = 1; t <= 1000; ++t) {
      p.set_gradients(t);
      q.set_gradients(t);
      a.step();
      b.step();
      for (std::size_t k = 0; k < p.value.size(); k += t % 100 ? 3 : 1) {
        auto const low = a.remainder(p.name(k));
        auto const master = b.master(q.name(k));
        for (std::size_t i = 0; i < p.value[k].size(); ++i) {
          auto const high = std::int64_t(std::bit_cast<std::uint16_t>(p.value[k][i]));
          auto const bits = std::bit_cast<std::uint32_t>(master[i]);
          wrong += high * 65536 + std::int16_t(low[i]) != std::int64_t(bits);
          negative += std::int16_t(low[i]) < 0;
          // Round-to-nearest, but not always to even at a tie.
          auto const even = std::bit_cast<std::uint16_t>(q.value[k][i]);
          not_rounded += std::int64_t(even) != high && (bits & 0xffff) != 0x8000;
        }
      }
    }
    CHECK(wrong == 0);
    CHECK(not_rounded == 0);
    CHECK(negative > 1000);
    CHECK(a.report().step == 1000);
    CHECK(!same_bits(p.value, problem<bfloat16, float>({3, 0, 300, 21}).value));
  };
  check(ds::adamw{.lr = 1e-3});
  check(ds::sgd{.lr = 1e-3, .momentum = 0.9, .weight_decay = 1e-3}, ds::clip_norm{10}, ds::ema{});
  check(ds::lamb{.lr = 1e-3}, ds::states<half>{}, ds::lookahead{});
}
