// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Mistakes that other systems made, numbered, each as a test that they would fail. 15 and 16 are stated here for the sums
// and means of one process; several ranks will have theirs. 21, 22 and 23 are also in gpu/traps_test.cu, with a capture;
// 2^31 elements on a device in gpu/huge_test.cu, and 10 in rules/laws_test.cpp.
#include <descent/accumulate.hpp>
#include <descent/average.hpp>
#include <descent/clip.hpp>
#include <descent/loss_scale.hpp>
#include <descent/loss_scaler.hpp>
#include <descent/optimizer.hpp>
#include <descent/rounding.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/linear.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/storage.hpp>
#include <descent/vary.hpp>
#include <descent/zero_grad.hpp>

#include <doctest/doctest.h>

#include "naive.hpp"
#include "recipes.hpp"
#include "support/oracle.hpp"
#include "support/problem.hpp"
#include "support/sizes.hpp"
#include "support/ulp.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

using namespace test;
namespace ds = descent;
using ds::half, ds::bfloat16;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();
std::vector<std::size_t> const sizes{3, 0, chunk + 9, 21};

template <class T> std::vector<double> widened(std::span<T const> x) {
  std::vector<double> r;
  for (T one : x) r.push_back(ds::widen<double>(one));
  return r;
}

}  // namespace

TEST_CASE("trap 1: the step count does not freeze in a small type, so that bias correction goes on") {
  static_assert(std::is_same_v<decltype(ds::step_report::step), std::int64_t>);
  // 1000 steps of one gradient in bfloat16, with a float master to see the difference: Adam then moves by lr each time.
  std::vector<bfloat16> value(9, ds::narrow<bfloat16>(1.f)), gradient(9, ds::narrow<bfloat16>(0.5f));
  ds::parameters<bfloat16> params;
  params.add("w", value.data(), gradient.data(), value.size());
  ds::adamw const rule{.lr = 1e-4, .beta2 = 0.9999, .weight_decay = 0};  // a slow beta: corrected for all 1000 steps
  ds::optimizer opt{params, rule, ds::master<float>{}, ds::states<float>{}};
  oracle truth(rule);
  truth.add({1});
  truth.tensors[0].g = {0.5};
  for (int t = 1; t <= 1000; ++t) opt.step(), truth.step();
  CHECK(opt.report().step == 1000);
  CHECK(opt.master("w")[8] == doctest::Approx(truth.tensors[0].p[0]).epsilon(1e-5));
  CHECK(truth.tensors[0].p[0] == doctest::Approx(0.9).epsilon(1e-6));

  // From 2^24 on a float would not count any more.
  using plan = ds::detail::plan<float, float, ds::adamw>;
  ds::control_block c;
  c.step = std::int64_t{1} << 24;
  for (int n = 0; n < 3; ++n) ds::detail::decide<plan>(c, rule, {}, {}, {});
  CHECK(c.step == (std::int64_t{1} << 24) + 3);
  CHECK(ds::linear{.from = 0, .to = 0x1p30, .steps = 1 << 30}(c.step) == double(c.step));
  CHECK(rule.at(1 << 20).v_unbias == 1);
}

#if defined(__linux__)
TEST_CASE("trap 4: more than 2^31 elements are all updated, first and last") {
  // The pages between the first, the one around 2^31 and the last lie many times over the same small memory.
  constexpr std::int64_t count = (std::int64_t{1} << 31) + 17, window = 1 << 25;  // bytes
  std::int64_t const page = sysconf(_SC_PAGESIZE), bytes = (2 * count + page - 1) / page * page;
  auto const room = [&](bool shared) {
    auto* const base = static_cast<char*>(
        mmap(nullptr, std::size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    REQUIRE(base != MAP_FAILED);
    if (!shared) return base;  // never written: the page of zeros
    std::FILE* const file = std::tmpfile();
    REQUIRE(file);
    REQUIRE(ftruncate(fileno(file), window) == 0);
    for (std::int64_t at = page; at + page < bytes; at += window) {
      std::int64_t const end = std::min(at + window, bytes - page);
      REQUIRE(mmap(base + at, std::size_t(end - at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file), 0) ==
              base + at);
    }
    std::int64_t const middle = (std::int64_t{1} << 32) / page * page;  // element 2^31
    REQUIRE(mmap(base + middle - page, std::size_t(2 * page), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base + middle - page);
    std::fclose(file);
    return base;
  };
  char *const v = room(true), *const g = room(false);
  auto* const value = reinterpret_cast<bfloat16*>(v);
  auto* const gradient = reinterpret_cast<bfloat16*>(g);
  std::int64_t const places[] = {0, 1, 15, (std::int64_t{1} << 31) - 1, std::int64_t{1} << 31, count - 9, count - 1};
  for (auto i : places) value[i] = ds::narrow<bfloat16>(1.f), gradient[i] = ds::narrow<bfloat16>(0.5f);
  ds::parameters<bfloat16> params;
  params.add("w", value, gradient, count);
  ds::optimizer opt{params, ds::sgd{.lr = 0.5}};
  opt.step();
  for (auto i : places) {
    CAPTURE(i);
    CHECK(ds::widen<double>(value[i]) == 0.75);
  }
  CHECK(ds::widen<double>(value[2]) == 0);
  munmap(v, std::size_t(bytes));
  munmap(g, std::size_t(bytes));
}
#endif

TEST_CASE("trap 5: tensors of size zero, first, last, in the middle, all, and more than 1000 tensors") {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    std::vector<std::size_t> list(round < 50 ? 1 + random() % 12 : 1200);
    for (std::size_t& n : list) n = random() % 3 == 0 || round % 10 == 0 ? 0 : 1 + random() % 20;
    if (round % 3 == 1) list.front() = 0;
    if (round % 3 == 2) list.back() = 0;
    problem<double> p(list);
    ds::lamb const rule{.lr = 0.01};
    oracle truth(rule, p);
    ds::optimizer opt{p.parameters(), rule, ds::clip_norm{1e6}, ds::zero_grad{}};
    double squares = 0, most = 0;
    for (int t = 1; t <= 3; ++t) {
      p.set_gradients(t);
      truth.take_gradients(p);
      squares = 0;
      for (auto const& x : p.grad)
        for (double one : x) squares += one * one;
      opt.step();
      truth.step();
      CHECK(opt.report().step == t);
      CHECK(opt.report().grad_norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
    }
    for (std::size_t k = 0; k < list.size(); ++k) {
      CHECK_UNARY(opt.state(p.name(k), "m").size() == list[k]);
      for (std::size_t i = 0; i < list[k]; ++i) most = std::fmax(most, std::abs(p.value[k][i] - truth.tensors[k].p[i]));
    }
    CHECK(most < 1e-13);
  }
}

TEST_CASE("trap 6: a step after an explicit unscale() does not unscale twice") {
  problem<float> p(sizes), q(sizes);
  ds::optimizer a{p.parameters(), ds::sgd{.lr = 1}, ds::static_loss_scale{1024}};
  ds::optimizer b{q.parameters(), ds::sgd{.lr = 1}, ds::static_loss_scale{1024}};
  for (int t = 1; t <= 3; ++t) {
    p.set_gradients(t, 1024);
    q.set_gradients(t, 1024);
    if (t != 2) b.unscale();  // and the step after the next without one unscales again
    a.step(), b.step();
    CHECK(same_bits(p.value, q.value));
  }
  CHECK(p.value[0][0] ==
        float(start(0, 0)) - float(gradient(0, 0, 1)) - float(gradient(0, 0, 2)) - float(gradient(0, 0, 3)));
}

TEST_CASE("trap 7: an infinity is still found after an explicit unscale()") {
  for (double bad : {infinity, -infinity, not_a_number}) {
    problem<float> p(sizes);
    ds::optimizer opt{p.parameters(), ds::adamw{}, ds::dynamic_loss_scale{.init = 64}};
    p.set_gradients(1, 64);
    p.grad[2][chunk + 1] = float(bad);
    auto const before = p.value;
    opt.unscale();
    opt.step();
    CHECK(!opt.report().applied);
    CHECK(opt.loss_scale() == 32);
    CHECK(same_bits(p.value, before));
    for (double m : widened(opt.state("tensor2", "m"))) CHECK_UNARY(m == 0);
  }
}

TEST_CASE("trap 8: clipping is of the true gradients, whatever the loss scale") {
  auto const train = [](double scale) {
    problem<float> p(sizes);
    ds::optimizer opt{p.parameters(), ds::sgd{.lr = 1}, ds::static_loss_scale{scale}, ds::clip_norm{2}};
    for (int t = 1; t <= 3; ++t) p.set_gradients(t, scale), opt.step();
    CHECK(opt.report().clip_factor < 0.1);
    return p.value;
  };
  CHECK(same_bits(train(0x1p8), train(1)));
  CHECK(same_bits(train(0x1p16), train(1)));
}

TEST_CASE("trap 9: the norm that is reported does not carry the loss scale") {
  problem<half> p(sizes);
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::static_loss_scale{128}};
  p.set_gradients(1, 128);
  double squares = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    for (std::size_t i = 0; i < sizes[k]; ++i) squares += std::pow(gradient(k, i, 1), 2);
  opt.step();
  CHECK(opt.report().grad_norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-13));
}

TEST_CASE("trap 11: the loss scale stays within its limits, and a run that skips for ever says so") {
  problem<half> p({9});
  ds::optimizer bad{p.parameters(), ds::sgd{}, ds::dynamic_loss_scale{.init = 65536, .min = 0.5}};
  p.grad[0][8] = ds::narrow<half>(infinity);
  int first_said = 0;
  for (int n = 1; n <= 3000; ++n) {
    bad.step();
    if (!first_said && bad.report().why.find("training is not recovering") != std::string::npos) first_said = n;
  }
  CHECK(bad.loss_scale() == 0.5);
  CHECK(bad.report().skipped == 3000);
  CHECK(first_said == 17 + 20);  // 2^16 to 2^-1 is 17 times a half

  ds::dynamic_loss_scale const grows{.init = 1, .interval = 1, .max = 1000};
  p.grad[0][8] = ds::narrow<half>(0.f);
  ds::optimizer good{p.parameters(), ds::sgd{}, grows};
  for (int n = 0; n < 1000; ++n) good.step();
  CHECK(good.loss_scale() == 1000);
  auto s = grows.start();
  ds::dynamic_loss_scale const unlimited{.init = 1, .interval = 1, .max = std::numeric_limits<float>::max()};
  unlimited.check();
  auto u = unlimited.start();
  for (int n = 0; n < 1000000; ++n) grows.next(s, true), unlimited.next(u, true);
  CHECK(s.scale == 1000);
  CHECK(std::isfinite(u.scale));
}

TEST_CASE("trap 12: bfloat16 weights move by small steps with a master or stochastic rounding, though not without") {
  auto const train = [](auto... policies) {
    std::vector<bfloat16> value(4000, ds::narrow<bfloat16>(1.f)), gradient(4000, ds::narrow<bfloat16>(1.f));
    ds::parameters<bfloat16> params;
    params.add("w", value.data(), gradient.data(), value.size());
    ds::optimizer opt{params, ds::adamw{.lr = 1e-4, .weight_decay = 0}, policies...};
    for (int t = 0; t < 100; ++t) opt.step();
    double sum = 0;
    for (bfloat16 x : value) sum += ds::widen<double>(x);
    return sum / 4000;
  };
  double const moved = train(ds::master<float>{});
  CHECK(moved == ds::widen<double>(ds::narrow<bfloat16>(0.99f)));
  CHECK(train(ds::master_remainder{}) == moved);
  CHECK(std::abs(train(ds::stochastic_rounding{}) - 0.99) < 5e-4);
  CHECK(train() == 1);
}

TEST_CASE("trap 13: values that were loaded are not undone by the first step from an old master") {
  auto const check = [](auto master) {
    problem<bfloat16> p(sizes);
    ds::optimizer opt{p.parameters(), ds::adamw{.lr = 0.1}, master};
    p.set_gradients(1);
    opt.step();
    for (auto& x : p.value)
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = ds::narrow<bfloat16>(float(start(9, i)));
    auto const loaded = p.value;
    opt.reload_values();
    opt.group(0).lr = 0;
    opt.step();
    CHECK(opt.report().step == 2);
    CHECK(same_bits(p.value, loaded));
  };
  check(ds::master<float>{});
  check(ds::master<double>{});
  check(ds::master_remainder{});
}

TEST_CASE("trap 14: a largest element does not hide what is not a number, in any order") {
  problem<float> p({2 * chunk, 3});
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::clip<ds::norm::inf>{1}};
  std::size_t const places[] = {0, 1, 7, 8, 255, 256 * 8, chunk - 1, chunk, 2 * chunk - 1};
  for (std::size_t bad : places)
    for (std::size_t huge : places) {
      if (bad == huge) continue;
      p.set_gradients(1);
      p.grad[0][bad] = float(not_a_number);
      p.grad[0][huge] = 1e30f;
      opt.step();
      CHECK_UNARY(!opt.report().applied);
      CHECK_UNARY(std::isnan(opt.report().grad_norm));
      CHECK_UNARY(opt.report().why.starts_with("the gradient of 'tensor0' is not finite"));
    }
}

TEST_CASE("trap 17: the comparisons of these tests fail where something is not a number") {
  CHECK(ulps(format_of<float>, not_a_number, 1) == infinity);
  CHECK(ulps(format_of<float>, 1, not_a_number) == infinity);
  CHECK(ulps(format_of<float>, 1, infinity) == infinity);
  CHECK(!recipes::near(not_a_number, 1));
  CHECK(!recipes::near(1, not_a_number));
  CHECK(!recipes::near(infinity, 1));
  CHECK(!same_bits(std::vector<float>{1}, std::vector<float>{float(not_a_number)}));
  CHECK(!same_bits(std::vector<double>{0.0}, std::vector<double>{-0.0}));
  CHECK(!(not_a_number == doctest::Approx(1).epsilon(1)));
  CHECK(!(1 == doctest::Approx(not_a_number).epsilon(1)));
}

TEST_CASE("trap 18: a norm is of the gradients that it is asked for, not of those before") {
  problem<float> p(sizes);
  p.group = {0, 0, 1, 1};
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::skip_nonfinite{}};
  auto const of = [&](std::vector<std::size_t> const& tensors) {
    double squares = 0;
    for (std::size_t k : tensors)
      for (double g : p.grad[k]) squares += g * g;
    return doctest::Approx(std::sqrt(squares)).epsilon(1e-13);
  };
  for (int t = 1; t <= 2; ++t) {
    p.set_gradients(t);
    CHECK(opt.gradient_norm(ds::group{0}) == of({0, 1}));
    CHECK(opt.gradient_norm(ds::group{1}) == of({2, 3}));
    CHECK(opt.gradient_norm("tensor3") == of({3}));
    CHECK(opt.gradient_norm() == of({0, 1, 2, 3}));
  }
  opt.freeze(1);
  CHECK(opt.gradient_norm() == of({0, 1}));
  opt.step();
  CHECK(opt.report().grad_norm == of({0, 1}));
  opt.freeze(1, false);
  CHECK(opt.gradient_norm() == of({0, 1, 2, 3}));
}

TEST_CASE("trap 21: rate and step follow the schedule at every step, for every field") {
  auto const rate = ds::warmup<ds::cosine>{.steps = 5, .then = {.peak = 0.1, .steps = 12}};
  auto const decay = ds::linear{.from = 0, .to = 0.2, .steps = 10};
  problem<double> p(sizes);
  oracle truth(ds::adamw{}, p);
  ds::optimizer opt{p.parameters(), ds::adamw{}, ds::learning_rate(rate), ds::vary<&ds::adamw::weight_decay>(decay)};
  for (int t = 1; t <= 20; ++t) {
    p.set_gradients(t);
    truth.take_gradients(p);
    truth.rules[0].lr = rate(t - 1);
    truth.rules[0].weight_decay = decay(t - 1);
    truth.step();
    opt.step();
    CHECK(opt.report().learning_rate == rate(t - 1));
    double most = 0;
    for (std::size_t i = 0; i < sizes[2]; ++i) most = std::fmax(most, std::abs(p.value[2][i] - truth.tensors[2].p[i]));
    CHECK(most < 1e-14);
  }
}

TEST_CASE("trap 22: a parameter without a gradient is refused, not silently left out") {
  std::vector<float> value(5);
  ds::parameters<float> params;
  CHECK(message([&] { params.add("late", value.data(), static_cast<float*>(nullptr), 5); }) ==
        "parameter 'late': gradient is null, but count is 5");
  CHECK(params.views().empty());
}

// ---- kernels: features.md 6.3, 3.2 and 3.6
// -----------------------------------------------------------------------------

TEST_CASE(
    "trap of fused SGD: a first step that is skipped leaves momentum that is a start, and the next is the first") {
  problem<float> p(sizes), q(sizes);
  ds::sgd const rule{.lr = 0.1, .momentum = 0.9, .dampening = 0.5};
  ds::optimizer skips{p.parameters(), rule, ds::skip_nonfinite{}};
  ds::optimizer never{q.parameters(), rule};
  p.set_gradients(1);
  p.grad[3][0] = float(infinity);
  skips.step();
  CHECK(skips.report().skipped == 1);
  for (double b : widened(skips.state("tensor2", "b"))) CHECK_UNARY(b == 0);
  for (int t = 1; t <= 3; ++t) {
    p.set_gradients(t);
    q.set_gradients(t);
    skips.step(), never.step();
    CHECK(same_bits(p.value, q.value));  // dampening starts at the second applied step
  }
}

TEST_CASE("trap of apex's capturable Adam: float moments of half parameters are not stored through half") {
  problem<half> p(sizes);
  ds::adamw const rule{.lr = 1e-3};
  oracle truth(rule, p);
  ds::optimizer opt{p.parameters(), rule, ds::states<float>{}};
  for (int t = 1; t <= 5; ++t) {
    p.set_gradients(t);
    truth.take_gradients(p);
    truth.step();
    opt.step();
  }
  std::size_t far = 0, halves = 0;
  for (std::size_t i = 0; i < sizes[2]; ++i)
    for (bool second : {false, true}) {
      float const got = opt.state("tensor2", second ? "v" : "m")[i];
      double const wanted = second ? truth.tensors[2].s[i].v : truth.tensors[2].s[i].m;
      far += std::abs(double(got) - wanted) > 1e-6 * std::fmax(std::abs(wanted), 0.1);
      halves += ds::widen<float>(ds::narrow<half>(got)) == got;
    }
  CHECK(far == 0);
  CHECK(halves < sizes[2] / 10);
}

TEST_CASE("trap of fused unscaling and of apex's LAMB: gradients after a step are what they were, in every path") {
  auto const check = [](auto rule, bool unscales, auto... policies) {
    problem<float> p(sizes);
    ds::optimizer opt{p.parameters(), rule, policies...};
    for (int t = 1; t <= 3; ++t) {
      p.set_gradients(t, 8);
      if (t == 2) p.grad[2][0] = float(not_a_number);
      if constexpr (sizeof...(policies) > 1)
        if (unscales) opt.unscale();
      auto const before = p.grad;
      opt.step();
      CHECK(same_bits(p.grad, before));
    }
  };
  check(ds::adamw{}, false);
  check(ds::lamb{}, false);
  check(ds::lamb{}, false, ds::static_loss_scale{8}, ds::clip_norm{1});
  check(ds::adamw{}, false, ds::dynamic_loss_scale{.init = 8}, ds::clip_norm{1});
  check(ds::adamw{}, true, ds::dynamic_loss_scale{.init = 8}, ds::clip_value{1});
}

TEST_CASE("trap of an overflow that is counted: two tell as much as one") {
  // Torch compares the sum over devices with 1, so that two skip nothing and take 2 from the step count.
  for (std::size_t bad = 1; bad <= 4; ++bad) {
    CAPTURE(bad);
    problem<float> p({chunk + 1, 5, 2 * chunk, 9});
    ds::optimizer opt{p.parameters(), ds::adamw{}, ds::dynamic_loss_scale{.init = 1024}};
    p.set_gradients(1, 1024);
    opt.step();
    auto const before = p.value;
    for (std::size_t k = 0; k < bad; ++k) p.grad[k].front() = p.grad[k].back() = float(infinity);
    opt.step();
    CHECK(!opt.report().applied);
    CHECK(opt.report().step == 1);
    CHECK(opt.report().skipped == 1);
    CHECK(opt.loss_scale() == 512);
    CHECK(same_bits(p.value, before));
  }
  // Nor do infinities of both signs cancel.
  problem<float> p({16});
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::clip<ds::norm::l1>{1}};
  p.grad[0][0] = float(infinity);
  p.grad[0][8] = float(-infinity);
  opt.step();
  CHECK(opt.report().step == 0);
}

TEST_CASE("trap of two optimizers on one scale that both overflow: each skips, one backoff") {
  problem<half> p(sizes), q(sizes);
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 1024}};
  ds::optimizer a{p.parameters(), ds::adamw{}, ds::shared_loss_scale{scaler}};
  ds::optimizer b{q.parameters(), ds::adamw{}, ds::shared_loss_scale{scaler}};
  auto const before = p.value;
  p.grad[0][0] = q.grad[0][0] = ds::narrow<half>(infinity);
  a.step(), b.step();
  scaler.update();
  CHECK(a.report().step == 0);
  CHECK(b.report().step == 0);
  CHECK(same_bits(p.value, before));
  CHECK(same_bits(q.value, before));
  CHECK(scaler.loss_scale() == 512);
}

TEST_CASE("trap of a step count that moves by the call before: it counts applied updates, in any pattern of skips") {
  std::mt19937 random(3);
  problem<float> p({9}), q({9});
  ds::optimizer skips{p.parameters(), ds::adamw{.lr = 0.1}, ds::skip_nonfinite{}};
  ds::optimizer never{q.parameters(), ds::adamw{.lr = 0.1}};
  int applied = 0;
  for (int call = 0; call < 200; ++call) {
    bool const bad = random() % 2;
    p.set_gradients(applied + 1);
    q.set_gradients(applied + 1);
    if (bad) p.grad[0][random() % 9] = float(not_a_number);
    skips.step();
    if (!bad) never.step(), ++applied;
    CHECK_UNARY(skips.report().step == applied);
    CHECK_UNARY(skips.report().skipped == call + 1 - applied);
    CHECK_UNARY(same_bits(p.value, q.value));
  }
  CHECK(applied > 50);
}

TEST_CASE("trap of a running sum that keeps what is not a number: the step after a bad one knows nothing of it") {
  problem<float> p(sizes), q(sizes);
  auto const make = [](auto& x) {
    return ds::optimizer{x.parameters(), ds::lamb{}, ds::clip_norm{1}, ds::ema{}, ds::lookahead{.k = 1}};
  };
  auto a = make(p), b = make(q);
  for (int t = 1; t <= 3; ++t) {
    p.set_gradients(t);
    std::fill(p.grad[2].begin(), p.grad[2].end(), float(not_a_number));
    a.step();
    p.set_gradients(t);
    q.set_gradients(t);
    a.step(), b.step();
    CHECK(a.report().grad_norm == b.report().grad_norm);
    CHECK(same_bits(p.value, q.value));
    CHECK(widened(a.average("tensor2")) == widened(b.average("tensor2")));
  }
}

TEST_CASE("trap 2: the step is saved and put back as the integer that it is, beyond what float and half count") {
  std::vector<float> w(8, 1.f), g(8, 0.5f);
  ds::parameters<float> params;
  params.add("w", w.data(), g.data(), w.size());
  for (std::int64_t const t : {std::int64_t{256}, std::int64_t{2049}, (std::int64_t{1} << 24) + 1, (std::int64_t{1} << 53) + 1}) {
    ds::optimizer opt{params, ds::adamw{}, ds::skip_nonfinite{}};
    opt.set_step(t);
    static_assert(std::is_same_v<decltype(opt.report().step), std::int64_t>);
    opt.step();
    CHECK(opt.report().step == t + 1);
  }
  ds::optimizer opt{params, ds::adamw{}};
  CHECK_THROWS_WITH_AS(opt.set_step(-1), "set_step: the step must be at least 0, is -1", std::invalid_argument);
}

TEST_CASE("trap 3: state is put back in its own type, and a run goes on from there to the bit") {
  std::vector<half> w(100, half(1.f)), g(100), w2, g2;
  auto const gradients = [&](std::vector<half>& to, int t) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = half(float(int(i * 37 + std::size_t(t) * 11) % 64 - 31) / 64);
  };
  auto const parameters = [](std::vector<half>& w, std::vector<half>& g) {
    ds::parameters<half> p;
    p.add("w", w.data(), g.data(), w.size());
    return p;
  };
  ds::optimizer first{parameters(w, g), ds::adamw{}, ds::states<float, bfloat16>{}, ds::skip_nonfinite{}};
  for (int t = 1; t <= 5; ++t) gradients(g, t), first.step();

  w2 = w, g2 = g;
  ds::optimizer second{parameters(w2, g2), ds::adamw{}, ds::states<float, bfloat16>{}, ds::skip_nonfinite{}};
  second.set_state<0>("w", first.state<0>("w"));  // a span of another type does not compile
  second.set_state<1>("w", first.state<1>("w"));
  second.set_step(first.report().step);
  for (int t = 6; t <= 9; ++t) gradients(g, t), gradients(g2, t), first.step(), second.step();
  CHECK(std::memcmp(w.data(), w2.data(), w.size() * sizeof(half)) == 0);
  CHECK(second.report().step == 9);
  CHECK_THROWS_WITH_AS(second.set_state<0>("w", first.state<0>("w").first(99)), "set_state of 'w': there are 100 elements, got 99",
                       std::invalid_argument);
}

TEST_CASE("trap 15: the mean of equal gradients is the gradient, bit for bit, for counts that are no powers of two") {
  for (int const n : {3, 5, 7, 100}) {
    float const gradient = ds::widen<float>(ds::narrow<bfloat16>(0.30078125f));
    std::vector<float> w(9, 0.f), g(9, 0.f);
    ds::parameters<float> params;
    params.add("w", w.data(), g.data(), w.size());
    ds::optimizer opt{params, ds::sgd{.lr = 1}, ds::accumulate{n}};
    for (int i = 0; i < n; ++i) {
      for (float& x : g) x += gradient;
      opt.step();
    }
    CHECK(opt.report().step == 1);
    for (float const x : w) CHECK(ds::widen<float>(ds::narrow<bfloat16>(x)) == -gradient);
  }
}

TEST_CASE("trap 16: sums of 16-bit gradients do not saturate") {
  std::size_t const n = 1 << 18;
  std::vector<bfloat16> w(n, bfloat16(0.f)), g(n, bfloat16(1.f));
  ds::parameters<bfloat16> params;
  params.add("w", w.data(), g.data(), n);
  ds::optimizer opt{params, ds::sgd{}, ds::clip<ds::norm::l1>{1e9}};
  opt.step();
  CHECK(opt.report().grad_norm == double(n));  // bfloat16 stops at 256, float at 2^24
}

TEST_CASE("trap of an optimizer that refuses half and bfloat16 together: both take one step") {
  std::vector<half> a(9, half(1.f)), da(9, half(0.5f));
  std::vector<bfloat16> b(9, bfloat16(1.f)), db(9, bfloat16(0.5f));
  ds::parameters<ds::mixed<half, bfloat16>> params;
  params.add("a", a.data(), da.data(), a.size());
  params.add("b", b.data(), db.data(), b.size());
  ds::optimizer opt{params, ds::sgd{.lr = 1}, ds::clip_norm{100}};
  opt.step();
  CHECK(ds::widen<float>(a[8]) == 0.5f);
  CHECK(ds::widen<float>(b[8]) == 0.5f);
}
