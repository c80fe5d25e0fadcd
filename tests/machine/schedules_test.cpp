// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Every schedule against its closed form in long double: at 0, at the joints, at the end and
// beyond.
#include <descent/schedules/constant.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/linear.hpp>
#include <descent/schedules/step.hpp>
#include <descent/schedules/warmup.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>

namespace ds = descent;
using real = long double;

namespace {

constexpr std::int64_t far = std::int64_t{1} << 40;
real const pi = std::acos(real(-1));

/// Whether got is want to a few units in the last place of `scale`.
bool near(double got, real want, real scale = 1) {
  return std::fabs(real(got) - want) <= 8 * real(0x1p-53) * std::fabs(scale);
}

real cosine_at(ds::cosine const& s, std::int64_t t) {
  if (t >= s.steps) return s.floor;
  return s.floor + (real(s.peak) - s.floor) * (1 + std::cos(pi * t / s.steps)) / 2;
}
real linear_at(ds::linear const& s, std::int64_t t) {
  if (t >= s.steps) return s.to;
  return s.from + (real(s.to) - s.from) * t / s.steps;
}

struct no_const {
  double operator()(std::int64_t) { return 0; }
};
struct returns_float {
  float operator()(std::int64_t) const { return 0; }
};
struct takes_nothing {
  double operator()() const { return 0; }
};
struct not_trivial {
  std::string text;
  double operator()(std::int64_t) const { return 0; }
};

}  // namespace

TEST_CASE("a schedule is a trivially copyable function of the step, lambdas included") {
  auto const lambda = [](std::int64_t step) { return 1.0 / double(step + 1); };
  CHECK(ds::schedule<decltype(lambda)>);
  CHECK(ds::schedule<ds::warmup<ds::warmup<ds::cosine>>>);
  CHECK(!ds::schedule<no_const>);
  CHECK(!ds::schedule<returns_float>);
  CHECK(!ds::schedule<takes_nothing>);
  CHECK(!ds::schedule<not_trivial>);
  CHECK(!ds::schedule<double>);
}

TEST_CASE("constant: the same value at every step") {
  for (std::int64_t t : {std::int64_t{0}, std::int64_t{1}, std::int64_t{999}, far})
    CHECK(ds::constant{0.3}(t) == 0.3);
}

TEST_CASE("linear: from at 0, to from the end on, a straight line between, up or down") {
  for (auto s : {ds::linear{1, 0, 10}, ds::linear{0.1, 0.7, 1000}, ds::linear{-2, 3, 7},
                 ds::linear{5, 5, 3}}) {
    CHECK(s(0) == s.from);
    CHECK(s(s.steps) == s.to);
    CHECK(s(s.steps + 1) == s.to);
    CHECK(s(far) == s.to);
    real const scale = std::fabs(s.from) + std::fabs(s.to);
    for (std::int64_t t = 0; t <= s.steps; ++t) CHECK(near(s(t), linear_at(s, t), scale));
    for (std::int64_t t = 0; t < s.steps; ++t)
      CHECK(std::fabs(s(t + 1) - s(t)) <= 1.001 * std::fabs(s.to - s.from) / double(s.steps));
  }
  CHECK(ds::linear{1, 0, 4}(1) == 0.75);
}

TEST_CASE("cosine: peak at 0, floor from the end on, half way in the middle, falling all the way") {
  for (auto s : {ds::cosine{1, 0, 10}, ds::cosine{3e-4, 3e-5, 1000}, ds::cosine{2, 1, 1},
                 ds::cosine{1, 0, 2}}) {
    CHECK(near(s(0), s.peak, s.peak));
    CHECK(s(s.steps) == s.floor);
    CHECK(s(s.steps + 1) == s.floor);
    CHECK(s(far) == s.floor);
    for (std::int64_t t = 0; t <= s.steps; ++t) CHECK(near(s(t), cosine_at(s, t), s.peak));
    for (std::int64_t t = 0; t < s.steps; ++t) {
      CHECK(s(t) > s(t + 1));
      CHECK(s(t) - s(t + 1) <= 1.5708 * (s.peak - s.floor) / double(s.steps));
    }
    if (s.steps % 2 == 0) CHECK(near(s(s.steps / 2), (real(s.peak) + s.floor) / 2, s.peak));
  }
}

TEST_CASE("step: a staircase whose stairs are exactly as long as asked") {
  ds::step const s{.initial = 8, .factor = 0.5, .every = 3};
  double const stairs[] = {8, 8, 8, 4, 4, 4, 2, 2, 2, 1, 1, 1, 0.5};
  for (std::size_t t = 0; t < std::size(stairs); ++t) CHECK(s(std::int64_t(t)) == stairs[t]);
  ds::step const tenth{.initial = 0.1};  // factor 0.1 after every step
  for (std::int64_t t = 0; t < 20; ++t) {
    real const want = real(0.1) * std::pow(real(0.1), t);
    CHECK(std::fabs(real(tenth(t)) / want - 1) < 64 * real(0x1p-53));
  }
  CHECK(ds::step{1, 0.5, 1}(far) == 0);
  CHECK(ds::step{1, 0.5, far}(far - 1) == 1);
  CHECK(ds::step{1, 0.5, far}(far) == 0.5);
}

TEST_CASE(
    "warmup: the first update uses one part, update number steps all, then the rest from its own "
    "0") {
  ds::warmup<ds::constant> const s{.steps = 4, .then = {2}};
  double const values[] = {0.5, 1, 1.5, 2, 2, 2};
  for (std::size_t t = 0; t < std::size(values); ++t) CHECK(s(std::int64_t(t)) == values[t]);
  CHECK(ds::warmup<ds::constant>{0, {2}}(0) == 2);
  CHECK(ds::warmup<ds::constant>{1, {2}}(0) == 2);
  CHECK(s(far) == 2);
}

TEST_CASE("warmup of 5 steps, then cosine over 40: the documented contract at every step") {
  ds::warmup<ds::cosine> const s{.steps = 5, .then = {.peak = 0.01, .floor = 0.001, .steps = 40}};
  for (std::int64_t t = 0; t < 60; ++t) {
    real const want = t < 5 ? real(0.01) * (t + 1) / 5 : cosine_at(s.then, t - 5);
    CAPTURE(t);
    CHECK(near(s(t), want, 0.01L));
  }
  CHECK(near(s(4), 0.01L, 0.01L));  // the rise ends at the peak,
  CHECK(s(5) == s(4));              // the fall starts from it,
  CHECK(s(6) < 0.01);               // without a second plateau,
  CHECK(s(44) > 0.001);             // and ends
  CHECK(s(45) == 0.001);            // at its own step 40
  for (std::int64_t t = 0; t < 4; ++t) CHECK(s(t) < s(t + 1));
  for (std::int64_t t = 5; t < 45; ++t) CHECK(s(t) > s(t + 1));
}

TEST_CASE("warmups nest: the outer one rises to the first value of the inner one") {
  using nested = ds::warmup<ds::warmup<ds::cosine>>;
  nested const s{.steps = 3, .then = {.steps = 5, .then = {.peak = 1, .floor = 0.25, .steps = 10}}};
  for (std::int64_t t = 0; t < 30; ++t) {
    real const want = t < 3   ? real(1) / 5 * (t + 1) / 3
                      : t < 8 ? real(t - 3 + 1) / 5
                              : cosine_at(s.then.then, t - 8);
    CAPTURE(t);
    CHECK(near(s(t), want));
  }
  ds::warmup<ds::step> const stairs{.steps = 2, .then = {.initial = 1, .factor = 0.5, .every = 2}};
  double const values[] = {0.5, 1, 1, 1, 0.5, 0.5, 0.25};
  for (std::size_t t = 0; t < std::size(values); ++t) CHECK(stairs(std::int64_t(t)) == values[t]);
}

TEST_CASE("2^40 steps: values at the start, the quarter points and the end") {
  ds::cosine const c{.peak = 1, .floor = 0, .steps = far};
  ds::linear const l{.from = 1, .to = 0, .steps = far};
  for (std::int64_t quarter = 0; quarter <= 4; ++quarter) {
    std::int64_t const t = far / 4 * quarter;
    CHECK(near(c(t), cosine_at(c, t)));
    CHECK(l(t) == 1 - double(quarter) / 4);
  }
  CHECK(l(far - 1) == 0x1p-40);
  CHECK(l(1) == 1 - 0x1p-40);
  CHECK(c(far - 1) >= 0);
  CHECK(c(far - 1) < 1e-15);
  ds::warmup<ds::linear> const w{.steps = far, .then = l};
  CHECK(w(0) == 0x1p-40);
  CHECK(w(far - 1) == 1);
  CHECK(w(far) == 1);
  CHECK(w(far + far / 2) == 0.5);
  CHECK(w(2 * far) == 0);
  CHECK(w(std::int64_t{1} << 62) == 0);
}
