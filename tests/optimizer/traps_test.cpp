// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Mistakes of other systems. Each is a test that those systems would fail; mistakes that a law already covers are not
// repeated here. docs/design/traps.md lists all of them.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/decay.hpp>

#include <doctest/doctest.h>

#include "support/oracle.hpp"
#include "support/problem.hpp"
#include "support/sizes.hpp"
#include "support/ulp.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

using namespace test;
namespace ds = descent;
using ds::half, ds::bfloat16;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();
std::vector<std::size_t> const sizes{3, 0, chunk + 9, 21};

}  // namespace

TEST_CASE("trap 1: the step count does not freeze in a small type, so bias correction continues") {
  static_assert(std::is_same_v<decltype(ds::step_report::step), std::int64_t>);
  // 1000 steps of one gradient in bfloat16, with a float master to show the difference: each step of Adam moves by lr.
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

  // From 2^24 on, a float would no longer count.
  using plan = ds::detail::plan<float, float, ds::adamw>;
  ds::control_block c;
  c.step = std::int64_t{1} << 24;
  for (int n = 0; n < 3; ++n) ds::detail::decide<plan>(c, {}, {}, {}), ds::detail::advance<plan>(c, rule, {});
  CHECK(c.step == (std::int64_t{1} << 24) + 3);
  CHECK(ds::linear{.from = 0, .to = 0x1p30, .steps = 1 << 30}(c.step) == double(c.step));
  CHECK(rule.at(1 << 20).v_unbias == 1);
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
  CHECK(!same_bits(std::vector<float>{1}, std::vector<float>{float(not_a_number)}));
  CHECK(!same_bits(std::vector<double>{0.0}, std::vector<double>{-0.0}));
  CHECK(!(not_a_number == doctest::Approx(1).epsilon(1)));
  CHECK(!(1 == doctest::Approx(not_a_number).epsilon(1)));
}

// ---- kernels --------------------------------------------------------------------------------------------------------

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

TEST_CASE("trap of an overflow that is counted: two count as one") {
  // Torch compares the sum over devices with 1, so two overflows skip nothing and take 2 from the step count.
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
  // Infinities of opposite sign do not cancel.
  problem<float> p({16});
  ds::optimizer opt{p.parameters(), ds::sgd{}, ds::clip<ds::norm::l1>{1}};
  p.grad[0][0] = float(infinity);
  p.grad[0][8] = float(-infinity);
  opt.step();
  CHECK(opt.report().step == 0);
}

TEST_CASE("trap 2: the step is saved and restored as an integer, beyond what float and half can count") {
  std::vector<float> w(8, 1.f), g(8, 0.5f);
  ds::parameters<float> params;
  params.add("w", w.data(), g.data(), w.size());
  std::int64_t const one = 1;
  for (std::int64_t const t : {256 * one, 2049 * one, (one << 24) + 1, (one << 53) + 1, one << 62}) {
    ds::optimizer opt{params, ds::adamw{}, ds::skip_nonfinite{}};
    opt.set_step(t);
    static_assert(std::is_same_v<decltype(opt.report().step), std::int64_t>);
    opt.step();
    CHECK(opt.report().step == t + 1);
  }
  ds::optimizer opt{params, ds::adamw{}};
  CHECK_THROWS_WITH_AS(opt.set_step(-1), "set_step: the step must be in [0, 2^62], is -1", std::invalid_argument);
  CHECK_THROWS_AS(opt.set_step((one << 62) + 1), std::invalid_argument);
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
