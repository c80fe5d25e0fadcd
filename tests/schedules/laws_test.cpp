// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Laws of schedules: ends, joints, direction, far steps, bad arguments; and formulas of systems that cannot run here.
#include <descent/schedules/choose.hpp>
#include <descent/schedules/combine.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/cycles.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/table.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/training/large_batch.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ds = descent;
using real = long double;
using wc = ds::warmup<ds::constant>;

namespace {

constexpr std::int64_t last_step = std::int64_t{1} << 62;
real const pi = std::acos(real(-1));

/// A schedule that starts at `first` and is exactly `end` from step `steps` on.
template <class S> void check_ends(S const& s, double first, double end, std::int64_t steps) {
  ds::detail::check_schedule(s);
  CHECK(s(0) == first);
  for (std::int64_t t : {steps, steps + 1, steps + 7, std::int64_t{1} << 40, last_step}) {
    CAPTURE(t);
    CHECK(s(t) == end);
  }
  CHECK(s(steps - 1) != end);
  CHECK(s.length() == steps);
}

/// No step of the first `steps` moves by more than `most`, and none goes up.
template <class S> void check_falls_smoothly(S const& s, std::int64_t steps, double most) {
  for (std::int64_t t = 0; t < steps; ++t) {
    CAPTURE(t);
    CHECK(s(t + 1) <= s(t));
    CHECK(s(t) - s(t + 1) <= most);
  }
}

/// Whether got equals want to a few units in the last place of `scale`.
bool near(double got, real want, real scale) { return std::fabs(real(got) - want) <= 8 * real(0x1p-53) * scale; }

real cosine_at(ds::cosine const& s, std::int64_t t) {
  if (t >= s.steps) return s.floor;
  return s.floor + (real(s.peak) - s.floor) * (1 + std::cos(pi * t / s.steps)) / 2;
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
struct no_length {
  double operator()(std::int64_t) const { return 0; }
};
struct not_trivial {
  std::string text;
  double operator()(std::int64_t) const { return 0; }
};

template <class S> std::string complaint(S const& s) {
  return test::message([&] { s.check(); });
}

bool close(double got, real want, double ulps = 8) {
  return std::fabs(real(got) - want) <= ulps * real(0x1p-53) * std::max(std::fabs(want), real(1e-300));
}

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

TEST_CASE("linear and cosine: their closed forms in long double at every step, up, down, level and of one step") {
  for (ds::linear s : {ds::linear{1, 0, 10}, {0.1, 0.7, 1000}, {-2, 3, 7}, {5, 5, 3}, {2, 1, 1}})
    for (std::int64_t t = 0; t <= s.steps + 1; ++t) {
      real const want = t < s.steps ? s.from + (real(s.to) - s.from) * t / s.steps : s.to;
      CHECK(near(s(t), want, std::fabs(s.from) + std::fabs(s.to)));
    }
  for (ds::cosine s : {ds::cosine{1, 0, 10}, {3e-4, 3e-5, 1000}, {2, 1, 1}, {1, 0, 2}})
    for (std::int64_t t = 0; t <= s.steps + 1; ++t) CHECK(near(s(t), cosine_at(s, t), s.peak));
}

TEST_CASE("schedules with an end: the first value and the last one exactly, and constant after the end") {
  check_ends(ds::linear{0.3, 0.05, 13}, 0.3, 0.05, 13);
  check_ends(ds::polynomial{0.3, 0.05, 2.5, 13}, 0.05 + (0.3 - 0.05), 0.05, 13);
  check_ends(ds::cosine{0.3, 0.05, 13}, 0.3, 0.05, 13);
  check_ends(ds::cosine{.peak = 0.3, .floor = 0.05, .steps = 13, .exponent = 2}, 0.05 + (0.3 - 0.05), 0.05, 13);
  check_ends(ds::one_cycle{.peak = 0.5, .steps = 37}, 0.02, 0.02 / 1e4, 36);
  ds::one_cycle const three{.peak = 0.5, .steps = 37, .shape = ds::anneal::linear, .three_phases = true};
  check_ends(three, 0.02, 0.02 / 1e4, 36);
  check_ends(ds::one_cycle_momentum{.steps = 37}, 0.95, 0.95, 36);
  check_ends(ds::wsd{.peak = 0.3, .floor = 0.05, .stable = 4, .decay = 5}, 0.3, 0.05, 9);
  check_ends(ds::piecewise_constant<2>{{3, 9}, {5, 4, 2}}, 5, 2, 9);
  check_ends(ds::piecewise_interpolated<2>{{3, 9}, {5, 4, 2}, ds::anneal::cosine}, 5, 2, 9);
  check_ends(ds::multi_step<2>{8, 0.5, {3, 9}}, 8, 2, 9);
  check_ends(ds::interval_decay{.initial = 8, .factor = 0.5, .every = 2, .begin = 3, .end = 8}, 8, 1, 7);
  check_ends(ds::swa_rate<ds::constant>{{0.3}, 4, 0.05, 6}, 0.3, 0.05, 10);
  check_ends(ds::table<4>{{1, 2, 3, 5}}, 1, 5, 3);
  check_ends(ds::delayed{4, ds::linear{1, 0, 5}}, 1, 0, 9);
}

TEST_CASE("the length of a schedule made of others, and schedules without an end") {
  ds::linear const fall{1, 0, 5};
  ds::exponential const tail{.initial = 1, .factor = 0.5};
  check_ends(ds::warmup<ds::linear>{.steps = 4, .then = fall}, 0.25, 0, 9);
  check_ends(ds::scaled{2, fall}, 2, 0, 5);
  check_ends(ds::clamped{0, 2, fall}, 1, 0, 5);
  check_ends(ds::join{{3, 4}, fall, ds::constant{2}, fall}, 1, 0, 9);
  check_ends(ds::chained{ds::linear{1, 0, 5}, ds::linear{1, 2, 3}}, 1, 0, 5);
  check_ends(ds::table_schedule<>{{0, 1}, {6, 3}}, 1, 3, 6);
  check_ends(ds::any_of<ds::exponential, ds::linear>{fall}, 1, 0, 5);
  CHECK(ds::per_epoch{fall, 10}.length() == 50);
  CHECK(ds::gradual_warmup<ds::linear>{2, 3, fall}.length() == 5);
  CHECK(ds::gradual_warmup<ds::linear>{2, 8, fall}.length() == 8);
  CHECK(ds::per_epoch{ds::linear{1, 0, last_step}, 10}.length() == ds::endless);
  CHECK(ds::delayed{last_step, ds::linear{1, 0, last_step}}.length() == ds::endless);
  CHECK(ds::any_of<ds::exponential, ds::linear>{tail}.length() == ds::endless);
  CHECK(ds::join{{3}, fall, tail}.length() == ds::endless);
  CHECK(ds::join{{3}, tail, fall}.length() == 8);
  CHECK(ds::chained{fall, tail}.length() == ds::endless);
  CHECK(ds::cosine{.peak = 1, .steps = 5, .after = ds::cosine::swing}.length() == ds::endless);
  CHECK(!ds::has_length<ds::warmup<no_length>>);
}

TEST_CASE("decays go down all the way, without a jump at a joint") {
  check_falls_smoothly(ds::cosine{1, 0.1, 50}, 60, 1.5708 * 0.9 / 50);
  check_falls_smoothly(ds::polynomial{1, 0.1, 3, 50}, 60, 3 * 0.9 / 50);
  check_falls_smoothly(ds::exponential{.initial = 1, .factor = 0.3, .steps = 10, .limit = 0.01}, 60, 0.121);
  check_falls_smoothly(ds::inverse_time{1, 2, 10}, 100, 0.2);
  check_falls_smoothly(ds::inverse_sqrt{1, 10}, 100, 0.05);
  for (auto tail : {ds::wsd::linear, ds::wsd::cosine, ds::wsd::exponential})
    check_falls_smoothly(ds::wsd{.peak = 1, .stable = 10, .decay = 40, .tail = tail}, 60, 1.5708 / 40);
  check_falls_smoothly(ds::wsd{.peak = 1, .stable = 10, .decay = 40}, 60, 1 / std::sqrt(40.) + 1e-12);
  check_falls_smoothly(ds::swa_rate<ds::linear>{{1, 0.5, 20}, 10, 0.2, 10}, 40, 1.5708 * 0.55 / 10);
  ds::warmup<ds::inverse_sqrt> const s{.steps = 16, .then = {2, 16}};
  for (std::int64_t t = 16; t < 100; ++t) CHECK(close(s(t), 2 * std::sqrt(real(16) / t)));
}

TEST_CASE("one cycle: rate and momentum move against each other and meet their extremes at the same step") {
  for (bool three : {false, true}) {
    ds::one_cycle const rate{.peak = 0.5, .steps = 41, .rise = 10. / 41, .three_phases = three};
    ds::one_cycle_momentum const momentum{.steps = 41, .rise = rate.rise, .three_phases = three};
    CHECK(rate(9) == doctest::Approx(0.5).epsilon(1e-14));
    CHECK(momentum(9) == doctest::Approx(0.85).epsilon(1e-14));
    for (std::int64_t t = 0; t < 40; ++t) {
      CHECK((rate(t + 1) > rate(t)) == (t < 9));
      CHECK((momentum(t + 1) - momentum(t)) * (rate(t + 1) - rate(t)) <= 0);
    }
    if (three) CHECK(rate(18) == doctest::Approx(0.02).epsilon(1e-13));
    CHECK(rate(40) == 0.02 / 1e4);
    CHECK(momentum(40) == 0.95);
  }
}

TEST_CASE("cyclic schedules have their period, from step 0 to 2^62") {
  ds::cyclic const s{.base = 0.1, .peak = 0.7, .up = 5, .down = 11};
  ds::cosine_restarts const r{.peak = 0.7, .floor = 0.1, .steps = 16};
  ds::cosine const swing{.peak = 0.7, .floor = 0.1, .steps = 8, .after = ds::cosine::swing};
  for (std::int64_t t = 0; t < 16; ++t)
    for (std::int64_t periods : {std::int64_t{1}, std::int64_t{1000}, (std::int64_t{1} << 58) - 1}) {
      CHECK(s(t + 16 * periods) == s(t));
      CHECK(r(t + 16 * periods) == r(t));
      CHECK(swing(t + 16 * periods) == swing(t));
    }
  CHECK(s(5) == 0.1 + (0.7 - 0.1));
  CHECK(swing(8) == 0.1);
  for (std::int64_t t = 0; t <= 8; ++t) CHECK(swing(8 + t) == swing(8 - t));
}

TEST_CASE("restarts: each cycle begins at the peak, is multiplier times as long, and decay lowers the peaks") {
  for (std::int64_t m : {1, 2, 3, 10}) {
    ds::cosine_restarts const s{.peak = 1, .floor = 0.25, .steps = 4, .multiplier = m, .decay = 0.5};
    std::int64_t begin = 0, length = 4;
    for (int cycle = 0; cycle < 6; ++cycle) {
      double const peak = 0.25 + 0.75 * std::pow(0.5, cycle);
      CHECK(s(begin) == peak);
      CHECK(s(begin + length / 2) == doctest::Approx((peak + 0.25) / 2).epsilon(1e-14));
      CHECK(s(begin + length - 1) < s(begin + length / 2));
      begin += length, length *= m;
    }
  }
  ds::cosine_restarts const endless{.peak = 1, .steps = 3, .multiplier = last_step};
  CHECK(endless(2) < endless(3));
  CHECK(endless(last_step) >= 0);
}

TEST_CASE("far steps: every schedule that does not grow is finite up to 2^62 and needs no loop over steps to say so") {
  auto const sane = [](auto const& s) {
    ds::detail::check_schedule(s);
    for (std::int64_t t : {std::int64_t{1} << 40, last_step - 1, last_step}) {
      CHECK(std::isfinite(s(t)));
      CHECK(s(t) >= 0);
    }
  };
  sane(ds::step{1, 0.999, 1});
  sane(ds::exponential{.initial = 1, .factor = 0.999, .steps = 7});
  sane(ds::exponential{.initial = 1, .factor = 1.5, .limit = 9});
  sane(ds::inverse_time{1, 1, 1});
  sane(ds::inverse_sqrt{1, 1});
  sane(ds::noam{});
  sane(ds::cyclic{.base = 0.1, .peak = 1, .mode = ds::cycles::exp_range, .gamma = 0.9999});
  sane(ds::cyclic{.base = 0.1, .peak = 1, .mode = ds::cycles::triangular2});
  sane(ds::cosine_restarts{.peak = 1, .steps = 10, .multiplier = 2});
  sane(ds::cosine{.peak = 1, .steps = last_step, .after = ds::cosine::swing});
  for (std::int64_t m : {1, 2, 7}) sane(ds::cyclical_decay{.initial = 1, .multiplier = m, .period = 100});
  sane(ds::wsd{.peak = 1, .warmup = last_step, .stable = last_step, .decay = last_step});
  sane(ds::one_cycle{.peak = 1, .steps = last_step});
  sane(ds::interval_decay{.initial = 1, .end = last_step});
  sane(ds::exponential{.initial = 0, .factor = 2});  // not 0 times infinity
  sane(ds::step{.initial = 0, .factor = 2});
  sane(ds::interval_decay{.initial = 0, .factor = 2, .every = 1, .end = last_step});
  sane(ds::join{{5, last_step}, ds::noam{}, ds::constant{1}, ds::constant{2}});
  CHECK(ds::join{{5, last_step}, ds::noam{}, ds::constant{1}, ds::constant{2}}(last_step) == 2);
}

TEST_CASE("any 64-bit step: every schedule returns, finite from step 0 on, and no integer overflows on the way") {
  constexpr std::int64_t one = 1, most = std::numeric_limits<std::int64_t>::max();
  auto const at_any_step = [](auto const& s) {
    ds::detail::check_schedule(s);
    for (std::int64_t t : {0 * one, one, one << 31, one << 53, last_step, most - 1, most}) {
      CAPTURE(t);
      CHECK(std::isfinite(s(t)));
      s(-t), s(-t - 1);  // not a valid step, but a caller may pass it by mistake
    }
  };
  auto const of_length = [&](std::int64_t n) {
    CAPTURE(n);
    ds::anneal const wave = ds::anneal::cosine;
    at_any_step(ds::constant{1});
    at_any_step(ds::linear{1, 0, n});
    at_any_step(ds::polynomial{1, 0, 2, n});
    at_any_step(ds::cosine{.peak = 1, .steps = n});
    at_any_step(ds::cosine{.peak = 1, .steps = n, .exponent = 2, .after = ds::cosine::swing});
    for (std::int64_t m : {one, 2 * one, last_step}) {
      at_any_step(ds::cosine_restarts{.peak = 1, .steps = n, .multiplier = m, .decay = 0.999});
      at_any_step(ds::cyclical_decay{.initial = 1, .restart = n, .multiplier = m, .period = 7});
    }
    for (auto mode : {ds::cycles::triangular, ds::cycles::triangular2, ds::cycles::exp_range}) {
      at_any_step(ds::cyclic{.base = 0, .peak = 1, .up = (n + 1) / 2, .mode = mode, .gamma = 0.999});
      at_any_step(ds::cyclic_momentum{.up = (n + 1) / 2, .down = n / 3, .mode = mode, .gamma = 0.999});
    }
    for (bool staircase : {false, true}) {
      at_any_step(ds::exponential{.initial = 1, .factor = 0.999, .steps = n, .staircase = staircase});
      at_any_step(ds::exponential{.initial = 1, .factor = 1.5, .steps = n, .staircase = staircase, .limit = 9});
      at_any_step(ds::inverse_time{1, 1, n, staircase});
    }
    at_any_step(ds::interval_decay{.initial = 1, .every = n, .begin = n / 2, .end = last_step});
    at_any_step(ds::inverse_sqrt{1, n});
    at_any_step(ds::noam{.warmup = n});
    at_any_step(ds::step{1, 0.5, n});
    at_any_step(ds::multi_step<2>{1, 0.5, {n, n}});
    at_any_step(ds::piecewise_constant<2>{{n, n + 1}, {1, 2, 3}});
    at_any_step(ds::piecewise_interpolated<2>{{n, n + 1}, {1, 2, 3}, wave});
    at_any_step(ds::table<3>{{1, 2, 3}});
    at_any_step(ds::table_schedule<2>{{0, 1.}, {n, 2.}});
    for (bool three : {false, true}) {
      at_any_step(ds::one_cycle{.peak = 1, .steps = n, .three_phases = three});
      at_any_step(ds::one_cycle_momentum{.steps = n, .three_phases = three});
    }
    for (auto tail : {ds::wsd::linear, ds::wsd::cosine, ds::wsd::sqrt, ds::wsd::exponential})
      at_any_step(ds::wsd{.peak = 1, .warmup = n, .stable = n, .decay = n, .tail = tail});
    for (auto form : {wc::linear, wc::cosine, wc::exponential, wc::logarithmic})
      for (auto first : {wc::past_start, wc::at_start})
        at_any_step(wc{.steps = std::max(n, 2 * one), .then = {1}, .shape = form, .from = 0.5, .first = first});
    using later = ds::warmup<ds::interval_decay>;
    at_any_step(later{.steps = n, .then = {.initial = 1, .every = n, .begin = n, .end = last_step}});
    at_any_step(ds::swa_rate<ds::linear>{{1, 0, n}, n, 0.5, n, wave});
    at_any_step(ds::join{{n, n + 1}, ds::noam{}, ds::polynomial{1, 0, 1, n}, ds::linear{0, 1, n}});
    at_any_step(ds::chained{ds::linear{1, 0, n}, ds::step{1, 0.5, n}});
    at_any_step(ds::scaled{2, ds::linear{1, 0, n}});
    at_any_step(ds::clamped{0, 1, ds::step{1, 0.5, n}});
    at_any_step(ds::delayed{n, ds::linear{1, 0, n}});
    at_any_step(ds::per_epoch{ds::polynomial{1, 0, 1, n}, n});
    at_any_step(ds::fractional_epochs{[](double epoch) { return epoch; }, n});
    at_any_step(ds::any_of<ds::linear, ds::step>{ds::linear{1, 0, n}});
    at_any_step([s = ds::per_group{ds::linear{1, 0, n}}](std::int64_t t) { return s(t, 0); });
    at_any_step(ds::gradual_warmup<ds::constant>{.k = 8, .steps = n, .then = {1}});
    ds::batch_growth<ds::step> const growth{.rate = {1, 0.5, n}, .batch = 64, .largest = 1024, .micro = 8, .begin = n};
    at_any_step(growth);
    at_any_step(accumulated(growth));
    at_any_step(ds::remaining_rate{growth});
  };
  for (std::int64_t n : {one, 1000 * one, last_step}) of_length(n);
  for (std::int64_t n : {-one, -last_step, -most - 1}) {
    CHECK(ds::power(0.5, n) == 1);
    CHECK(ds::precise_power(0.5, n) == 1);
  }
}

TEST_CASE("warm-up: forms and offsets, and all of it at the end") {
  using w = wc;
  for (auto form : {w::linear, w::cosine, w::exponential, w::logarithmic}) {
    CAPTURE(int(form));
    w const s{.steps = 8, .then = {2}, .shape = form, .from = 0.1};
    w const zero{.steps = 8, .then = {2}, .shape = form, .from = 0.1, .first = w::at_start};
    s.check();
    if (form != w::logarithmic) {
      CHECK(zero(0) == doctest::Approx(0.2).epsilon(1e-15));          // PyTorch, optax: the start itself
      for (std::int64_t t = 0; t < 7; ++t) CHECK(zero(t + 1) == s(t));  // ours is one step ahead
    }
    CHECK(s(7) == doctest::Approx(2).epsilon(1e-15));
    for (std::int64_t t = 0; t < 7; ++t) CHECK(s(t) < s(t + 1));
    CHECK(s(8) == 2);
    CHECK(zero(8) == 2);
  }
  w const geometric{.steps = 4, .then = {1}, .shape = w::exponential, .from = 1. / 16, .first = w::at_start};
  for (std::int64_t t = 0; t < 4; ++t) CHECK(geometric(t) == std::pow(2., double(t) - 4));
}

TEST_CASE("warmups nest: the outer one rises to the first value of the inner one, which begins at its own 0") {
  using nested = ds::warmup<ds::warmup<ds::cosine>>;
  nested const s{.steps = 3, .then = {.steps = 5, .then = {.peak = 1, .floor = 0.25, .steps = 10}}};
  for (std::int64_t t = 0; t < 30; ++t) {
    real const want = t < 3 ? real(1) / 5 * (t + 1) / 3 : t < 8 ? real(t - 3 + 1) / 5 : cosine_at(s.then.then, t - 8);
    CAPTURE(t);
    CHECK(near(s(t), want, 1));
  }
  ds::warmup<ds::step> const stairs{.steps = 2, .then = {.initial = 1, .factor = 0.5, .every = 2}};
  double const values[] = {0.5, 1, 1, 1, 0.5, 0.5, 0.25};
  for (std::size_t t = 0; t < std::size(values); ++t) CHECK(stairs(std::int64_t(t)) == values[t]);
  CHECK(wc{0, {2}}(0) == 2);
  CHECK(wc{1, {2}}(0) == 2);
}

TEST_CASE("DeepSpeed's WarmupLR: logarithmic, the lowest rate at step 0, the highest at the warm-up's last step") {
  double const lowest = 1e-5, highest = 1e-3;
  wc const s{.steps = 1000, .then = {highest}, .shape = wc::logarithmic, .from = lowest / highest};
  CHECK(s(0) == lowest);
  for (std::int64_t t = 0; t < 1000; ++t)
    CHECK(s(t) == doctest::Approx(lowest + (highest - lowest) * std::log(t + 1.) / std::log(1000.)).epsilon(1e-13));
  CHECK(s(999) == highest);
  CHECK(s(1000) == highest);
}

TEST_CASE("llm.c's schedulers: warm-up whose first update moves, cosine, linear and wsd") {
  int const W = 10, N = 100;
  double const rate = 3e-4, lowest = 0.1 * rate;
  ds::warmup<ds::cosine> const cosine{W, {rate, lowest, N - W}};
  ds::warmup<ds::linear> const line{W, {rate, lowest, N - W}};
  ds::wsd const wsd{.peak = rate, .floor = lowest, .warmup = W, .stable = 80 - W, .decay = 20};
  for (int s = 0; s <= N; ++s) {
    CAPTURE(s);
    double const up = rate * (s + 1) / W, r = double(s - W) / (N - W);
    double const wave = 0.5 * (1 + std::cos(M_PI * r));
    CHECK(cosine(s) == doctest::Approx(s < W ? up : lowest + wave * (rate - lowest)).epsilon(1e-13));
    CHECK(line(s) == doctest::Approx(s < W ? up : rate - r * (rate - lowest)).epsilon(1e-13));
    double const tail = lowest + (1 - std::sqrt((s - 80) / 20.)) * (rate - lowest);
    CHECK(wsd(s) == doctest::Approx(s < W ? up : s < 80 ? rate : tail).epsilon(1e-13));
  }
  CHECK(cosine(0) > 0);
}

TEST_CASE("Megatron's decays: wsd with four tails, and an inverse square root that meets its warm-up at the peak") {
  for (int t = 0; t <= 40; ++t) {
    double const x = t / 40.;
    auto const at = [&](ds::wsd::form tail) { return ds::wsd{.peak = 3, .floor = 1, .decay = 40, .tail = tail}(t); };
    CHECK(at(ds::wsd::linear) == doctest::Approx(1 + 2 * (1 - x)).epsilon(1e-14));
    CHECK(at(ds::wsd::cosine) == doctest::Approx(1 + 2 * 0.5 * (std::cos(M_PI * x) + 1)).epsilon(1e-14));
    CHECK(at(ds::wsd::exponential) == doctest::Approx(1 + 2 * (2 * std::pow(0.5, x) - 1)).epsilon(1e-14));
    CHECK(at(ds::wsd::sqrt) == doctest::Approx(1 + 2 * (1 - std::sqrt(x))).epsilon(1e-14));
  }
  using rise = ds::warmup<ds::inverse_sqrt>;
  rise const s{.steps = 25, .then = {2, 25}, .first = rise::at_start};
  for (int t = 0; t < 200; ++t)
    CHECK(s(t) == doctest::Approx(t <= 25 ? 2 * t / 25. : 2 * std::sqrt(25.) / std::sqrt(double(t))).epsilon(1e-14));
}

TEST_CASE("DeepSpeed's WarmupDecayLR, WarmupCosineLR, OneCycle and LRRangeTest: each update by their recurrences") {
  int const W = 8, total = 40;
  double const peak = 0.3, start = 0.03;
  using w = ds::warmup<ds::linear>;
  w const decay{.steps = W, .then = {peak, 0, total - W}, .shape = w::logarithmic, .from = start / peak};
  ds::join const wave{{W - 1}, wc{.steps = W, .then = {peak}, .shape = wc::logarithmic, .from = start / peak},
                      ds::cosine{.peak = peak, .floor = 0.1 * peak, .steps = total - W, .after = ds::cosine::swing}};
  ds::join const cycle{{12}, ds::cyclic{0.02, 0.2, 5, 7}, ds::inverse_time{0.02, 0.5, 3}};
  ds::linear const range{1e-3, 1e-3 * (1 + 2.0 * 10), 10 * 4};
  for (int t = 0; t < 60; ++t) {
    CAPTURE(t);
    double const rise = std::log(t + 1.) / std::log(double(W));
    double const left = std::fmax(0, double(total - t) / (total - W));
    CHECK(decay(t) == doctest::Approx(t < W ? start + (peak - start) * rise : peak * left).epsilon(1e-13));
    double const x = double(t - W + 1) / (total - W), part = 0.1 + 0.9 * (1 + std::cos(M_PI * x)) / 2;
    CHECK(wave(t) == doctest::Approx(t < W ? start + (peak - start) * rise : peak * part).epsilon(1e-12));
    double const u = t < 12 ? std::fmin(t / 5., (12 - t) / 7.) : 0;  // their iteration is that of the update
    CHECK(cycle(t) == doctest::Approx(t < 12 ? 0.02 + 0.18 * u : 0.02 / (1 + 0.5 * (t - 12) / 3.)).epsilon(1e-13));
    if (t <= 40) CHECK(range(t) == doctest::Approx(1e-3 * (1 + 2.0 * t / 4)).epsilon(1e-13));
  }
}

TEST_CASE("Megatron's rates and weight decay, warm-up from 0 or more included, at every step and past the end") {
  int const W = 10, N = 60, D = 20;
  double const most = 0.3, least = 0.13, init = 0.03;
  auto const up = [&](auto const& then) {
    using rise = ds::warmup<std::remove_cvref_t<decltype(then)>>;
    return rise{.steps = W, .then = then, .from = init / most, .first = rise::at_start};
  };
  auto const line = up(ds::linear{most, least, N - W});
  auto const wave = up(ds::cosine{most, least, N - W});
  auto const wsd = up(ds::wsd{.peak = most, .floor = least, .stable = N - D - W, .decay = D});
  ds::join const root{{N + 1}, up(ds::clamped{least, most, ds::inverse_sqrt{most, W}}), ds::constant{least}};
  ds::join const low{{N + 1}, up(ds::clamped{0, most, ds::inverse_sqrt{most, W}}), ds::constant{0}};
  ds::linear const decay{0.01, 0.1, N};
  ds::piecewise_interpolated<1> const decay_wave{{N}, {0.01, 0.1}, ds::anneal::cosine};
  for (int t = 0; t < 100; ++t) {
    CAPTURE(t);
    double const rise = init + (most - init) * t / W, r = double(t - W) / (N - W), v = std::fmin(1, double(t) / N);
    auto const want = [&](double left) { return t <= W ? rise : t > N ? least : least + left * (most - least); };
    double const tail = t <= N - D ? 1 : 1 - std::sqrt(double(t - N + D) / D);
    CHECK(line(t) == doctest::Approx(want(1 - r)).epsilon(1e-13));
    CHECK(wave(t) == doctest::Approx(want(0.5 * (1 + std::cos(M_PI * r)))).epsilon(1e-13));
    CHECK(wsd(t) == doctest::Approx(want(tail)).epsilon(1e-13));
    double const fall = most * std::sqrt(W) / std::sqrt(double(t));
    CHECK(root(t) == doctest::Approx(t <= W ? rise : t > N ? least : std::fmax(least, fall)).epsilon(1e-13));
    CHECK(low(t) == doctest::Approx(t <= W ? rise : t > N ? 0 : fall).epsilon(1e-13));
    CHECK(decay(t) == doctest::Approx(0.01 + 0.09 * v).epsilon(1e-13));
    CHECK(decay_wave(t) == doctest::Approx(0.01 + 0.09 * 0.5 * (1 + std::cos(M_PI * (1 - v)))).epsilon(1e-13));
  }
  CHECK(root(59) == least);  // it reaches the floor before the end
}

TEST_CASE("ensmallen's ExponentialBackoff drops at its cutoff, and after each first / beta from there") {
  for (double beta : {0.5, 0.3, 0.9}) {
    std::int64_t const first = 7;
    ds::interval_decay const s{0.4, beta, std::int64_t(double(first) / beta), first, last_step};
    s.check();
    double rate = 0.4;
    std::size_t cutoff = first;
    for (std::size_t t = 0; t < 200; ++t) {
      if (t >= cutoff) rate *= beta, cutoff = std::size_t(double(cutoff) + double(first) / beta);
      CHECK(s(std::int64_t(t)) == doctest::Approx(rate).epsilon(1e-13));
    }
  }
}

TEST_CASE("Horovod's LearningRateWarmup ends at the rate, LearningRateSchedule of a number is a power of the epoch") {
  int const k = 8, epochs = 5, each = 12;
  wc const s{.steps = epochs * each, .then = {0.8}, .from = 1. / k};
  ds::exponential const smooth{0.8, 0.7, each}, stairs{0.8, 0.7, each, true};
  auto const staircase = ds::per_epoch{[](std::int64_t e) { return 0.8 / double(1 + e); }, each};
  for (int t = 0; t < 100; ++t) {
    CAPTURE(t);
    double const epoch = double(t) / each, next = epoch + 1. / each;
    CHECK(s(t) == doctest::Approx(t < epochs * each ? 0.8 / k * (next * (k - 1) / epochs + 1) : 0.8).epsilon(1e-13));
    CHECK(smooth(t) == doctest::Approx(0.8 * std::pow(0.7, epoch)).epsilon(1e-13));
    CHECK(stairs(t) == doctest::Approx(0.8 * std::pow(0.7, std::floor(epoch))).epsilon(1e-13));
    CHECK(staircase(t) == 0.8 / (1 + std::floor(epoch)));
  }
}

TEST_CASE("noam: the paper's formula for steps from 1, its peak at step warmup - 1") {
  ds::noam const s{.scale = 2, .d_model = 512, .warmup = 40};
  for (int t = 0; t < 200; ++t) {
    real const n = t + 1, want = 2 / std::sqrt(real(512)) * std::fmin(1 / std::sqrt(n), n * std::pow(real(40), -1.5L));
    CHECK(close(s(t), want));
    CHECK(s(t) <= s(39));
  }
  CHECK(close(s(39), 2 / std::sqrt(real(512) * 40)));
}

TEST_CASE("trap of tiny-cuda-nn: ExponentialDecay drops first at its start, not an interval later") {
  ds::interval_decay const s{.initial = 1, .factor = 0.5, .every = 4, .begin = 6, .end = 14};
  double rate = 1;  // the recurrence, which changes the rate that it stores
  for (int t = 0; t < 60; ++t) {
    if (t >= 6 && (t - 6) % 4 == 0 && t <= 14) rate *= 0.5;
    CAPTURE(t);
    CHECK(s(t) == rate);
  }
  CHECK(s(5) == 1);
  CHECK(s(6) == 0.5);
  CHECK(s(14) == 0.125);
  CHECK(s(18) == 0.125);
}

TEST_CASE("trap of ensmallen: CyclicalDecay counts updates, rests between cycles and takes effect an update later") {
  for (std::int64_t m : {1, 2, 3})
    for (std::int64_t first : {1, 2, 5}) {
      ds::cyclical_decay const s{.initial = 0.3, .restart = first, .multiplier = m, .period = 7};
      s.check();
      std::int64_t from = first, restart = first, since = 0;
      double rate = 0.3;
      for (std::int64_t t = 0; t < 300; ++t) {
        CAPTURE(m);
        CAPTURE(first);
        CAPTURE(t);
        CHECK(std::fabs(s(t) - rate) <= 1e-15);
        if (t >= from) rate = double(0.5L * 0.3L * (1 + std::cos(since++ / real(7) * pi)));
        if (t > restart) since = 0, from *= m, restart += from;
      }
    }
}

TEST_CASE("combinators are what they say") {
  ds::cosine const c{1, 0.1, 20};
  auto const product = ds::chained{c, ds::step{1, 0.5, 4}, ds::linear{0, 1, 3}};
  auto const joined = ds::join{{4, 9}, c, ds::linear{3, 4, 5}, ds::step{8, 0.5, 2}};
  auto const one_after_the_other = ds::delayed{3, c};
  for (std::int64_t t = 0; t < 50; ++t) {
    CAPTURE(t);
    CHECK(ds::scaled{2.5, c}(t) == 2.5 * c(t));
    CHECK(ds::clamped{0.3, 0.7, c}(t) == std::fmin(std::fmax(c(t), 0.3), 0.7));
    CHECK(one_after_the_other(t) == c(t < 3 ? 0 : t - 3));
    CHECK(ds::per_epoch{c, 6}(t) == c(t / 6));
    CHECK(ds::fractional_epochs{[](double e) { return 1 / (1 + e); }, 6}(t) == 1 / (1 + double(t) / 6));
    double const factors = c(t) * std::pow(0.5, double(t / 4)) * std::fmin(double(t) / 3, 1);
    CHECK(product(t) == doctest::Approx(factors).epsilon(1e-15));
    CHECK(joined(t) == (t < 4 ? c(t) : t < 9 ? ds::linear{3, 4, 5}(t - 4) : ds::step{8, 0.5, 2}(t - 9)));
  }
}

TEST_CASE("per epoch and at fractional epochs: equal at the first step of each epoch") {
  ds::cosine const in_epochs{1, 0, 10}, in_steps{1, 0, 10 * 12};
  for (std::int64_t e = 0; e < 15; ++e) CHECK(ds::per_epoch{in_epochs, 12}(12 * e) == in_steps(12 * e));
  CHECK(ds::per_epoch{in_epochs, 12}(11) == 1);
  CHECK(in_steps(11) < 1);
}

TEST_CASE("long decays keep their digits: factors a little below 1, to any number of steps") {
  for (int bits : {20, 40}) {
    std::int64_t const n = std::int64_t{1} << bits;
    double const factor = 1 - std::ldexp(1., -bits);
    // ln(1 - x) = -x - x^2 / 2 - x^3 / 3 - ...
    auto const want = [&](std::int64_t t) {
      real const x = std::ldexp(real(1), -bits);
      return std::exp(-real(t) * (x + x * x / 2 + x * x * x / 3 + x * x * x * x / 4));
    };
    for (std::int64_t t : {n / 7, n - 1, n, n + 1, 3 * n + 5, 17 * n, std::min(n * 600, std::int64_t{1} << 49)}) {
      CAPTURE(bits);
      CAPTURE(t);
      CHECK(close(ds::step{1, factor, 1}(t), want(t), 1.5));
      CHECK(close(ds::exponential{1, factor}(t), want(t), 1.5));
      CHECK(close(ds::interval_decay{1, factor, 1, 0, last_step}(t - 1), want(t), 1.5));
      CHECK(close(ds::cyclic{0, 1, 1, 1, ds::cycles::exp_range, factor}(2 * (t / 2) + 1), want(2 * (t / 2) + 1), 1.5));
      CHECK(close(ds::cosine_restarts{1, 0, 1, 1, factor}(t), want(t), 1.5));
    }
  }
  for (std::int64_t k = 1; k < 500; ++k) {  // factors whose powers have many digits from the start
    std::int64_t const t = 0x5555555555 + 12345678901 * k;
    double const factor = 1 - 1e-12;
    CHECK(close(ds::step{1, factor, 1}(t), std::exp(real(t) * std::log1p(real(factor) - 1)), 1.5));
  }
  CHECK(ds::precise_power(0.5, 1000) == 0x1p-1000);
  CHECK(ds::precise_power(0.5, 2000) == 0);
  CHECK(std::isinf(ds::precise_power(2, 2000)));
  CHECK(std::isinf(ds::precise_power(1.5, last_step)));
  CHECK(ds::precise_power(1, last_step) == 1);
  CHECK(ds::precise_power(0.3, 0) == 1);
}

TEST_CASE("2^40 steps: values at the start, the quarter points and the end") {
  constexpr std::int64_t far = std::int64_t{1} << 40;
  ds::cosine const c{.peak = 1, .floor = 0, .steps = far};
  ds::linear const l{.from = 1, .to = 0, .steps = far};
  for (std::int64_t quarter = 0; quarter <= 4; ++quarter) {
    std::int64_t const t = far / 4 * quarter;
    CHECK(near(c(t), cosine_at(c, t), 1));
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
  CHECK(w(last_step) == 0);
  CHECK(ds::step{1, 0.5, far}(far - 1) == 1);
  CHECK(ds::step{1, 0.5, far}(far) == 0.5);
}

TEST_CASE("bad arguments: which field, what is allowed, what it is") {
  double const nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  CHECK(complaint(ds::linear{1, 0, -12345678}) == "linear: steps must be in [0, 2^62], is -12345678");
  CHECK(complaint(ds::interval_decay{.initial = 1, .begin = 10000001, .end = 10000000}) ==
        "interval_decay: end must be at least begin, 10000001, is 10000000");
  CHECK(complaint(ds::interval_decay{.initial = 1, .end = last_step + 1}) ==
        "interval_decay: end must be in [0, 2^62], is 4611686018427387905");
  CHECK(complaint(ds::piecewise_constant<2>{{10000001, 10000000}, {}}) ==
        "piecewise_constant: at[1] must be above 0 and increasing, is 10000000");
  CHECK(complaint(ds::piecewise_constant<2>{{1, 2}, {1, 2, nan}}) ==
        "piecewise_constant: values[2] must be finite, is nan");
  CHECK(complaint(ds::table<2>{{1, inf}}) == "table: values[1] must be finite, is inf");
  CHECK(complaint(wc{.steps = 4, .from = -1}) == "warmup: from must be finite and at least 0, is -1");
  CHECK(complaint(ds::plateau{.floor = 2}) == "plateau: floor must be finite and at most initial, 1, is 2");
  CHECK(complaint(ds::constant{inf}) == "constant: value must be finite, is inf");
  CHECK(complaint(ds::linear{nan, 0, 5}) == "linear: from must be finite, is nan");
  CHECK(complaint(ds::polynomial{1, 0, 0, 5}) == "polynomial: power must be finite and above 0, is 0");
  CHECK(complaint(ds::cosine{1, 0, 0}) == "cosine: steps must be in [1, 2^62], is 0");
  CHECK(complaint(ds::cosine{1, 0, 1, -1}) == "cosine: exponent must be finite and above 0, is -1");
  CHECK(complaint(ds::cosine_restarts{1, 0, 5, 0}) == "cosine_restarts: multiplier must be in [1, 2^62], is 0");
  CHECK(complaint(ds::cosine_restarts{1, 0, 5, 1, 1.5}) == "cosine_restarts: decay must be in (0, 1], is 1.5");
  CHECK(complaint(ds::step{1, 0, 5}) == "step: factor must be finite and above 0, is 0");
  CHECK(complaint(ds::step{1, 0.1, -1}) == "step: every must be in [1, 2^62], is -1");
  CHECK(complaint(ds::multi_step<3>{1, 0.1, {5, 9, 8}}) ==
        "multi_step: at[2] must be at least 1 and not decreasing, is 8");
  CHECK(complaint(ds::multi_step<2>{1, 0.1}) == "multi_step: at[0] must be at least 1 and not decreasing, is 0");
  CHECK(complaint(ds::exponential{1, 0}) == "exponential: factor must be finite and above 0, is 0");
  CHECK(complaint(ds::exponential{1, 0.5, 1, false, inf}) ==
        "exponential: limit must be finite, or NaN for no limit, is inf");
  CHECK(complaint(ds::inverse_time{1, -1}) == "inverse_time: rate must be finite and at least 0, is -1");
  CHECK(complaint(ds::inverse_sqrt{1, 0}) == "inverse_sqrt: steps must be in [1, 2^62], is 0");
  CHECK(complaint(ds::noam{.warmup = 0}) == "noam: warmup must be in [1, 2^62], is 0");
  CHECK(complaint(ds::one_cycle{.peak = 1, .steps = 9, .rise = 0.6, .three_phases = true}) ==
        "one_cycle: rise must be in [0, 0.5] with three phases, is 0.6");
  CHECK(complaint(ds::one_cycle{.peak = 1, .steps = 9, .start_div = 0}) ==
        "one_cycle: start_div must be finite and above 0, is 0");
  CHECK(complaint(ds::one_cycle_momentum{.high = 1}) == "one_cycle_momentum: high must be in [0, 1), is 1");
  CHECK(complaint(ds::cyclic{.up = 0}) == "cyclic: up must be in [1, 2^61], is 0");
  CHECK(complaint(ds::cyclic{.gamma = 0}) == "cyclic: gamma must be in (0, 1], is 0");
  CHECK(complaint(ds::cyclic_momentum{.low = -1}) == "cyclic_momentum: low must be in [0, 1), is -1");
  CHECK(complaint(ds::cyclical_decay{.initial = 1, .period = 0}) ==
        "cyclical_decay: period must be finite and above 0, is 0");
  CHECK(complaint(ds::piecewise_constant<2>{{5, 5}, {}}) ==
        "piecewise_constant: at[1] must be above 0 and increasing, is 5");
  CHECK(complaint(ds::piecewise_interpolated<2>{{0, 5}, {}}) ==
        "piecewise_interpolated: at[0] must be above 0 and increasing, is 0");
  CHECK(complaint(wc{.steps = -1}) == "warmup: steps must be in [0, 2^62], is -1");
  CHECK(complaint(wc{.steps = 4, .shape = wc::exponential}) == "warmup: from must be above 0 if exponential, is 0");
  CHECK(complaint(wc{.steps = 1, .shape = wc::logarithmic}) ==
        "warmup: steps must be 0 or at least 2 if logarithmic, is 1");
  CHECK(complaint(ds::wsd{.peak = 1, .decay = 0}) == "wsd: decay must be in [1, 2^62], is 0");
  CHECK(complaint(ds::swa_rate<ds::constant>{.begin = -1}) == "swa_rate: begin must be in [0, 2^62], is -1");
  CHECK(complaint(ds::clamped{1, 0, ds::constant{}}) == "clamped: high must be finite and at least low, is 0");
  CHECK(complaint(ds::scaled{nan, ds::constant{}}) == "scaled: factor must be finite, is nan");
  CHECK(complaint(ds::per_epoch{ds::constant{}, 0}) == "per_epoch: steps_per_epoch must be in [1, 2^62], is 0");
  CHECK(complaint(ds::delayed{-1, ds::constant{}}) == "delayed: steps must be in [0, 2^62], is -1");
  CHECK(complaint(ds::join{{9, 9}, ds::constant{}, ds::constant{}, ds::constant{}}) ==
        "join: at[1] must be above 0 and increasing, is 9");
  CHECK(complaint(ds::plateau{.factor = 1}) == "plateau: factor must be in (0, 1), is 1");
  CHECK(complaint(ds::plateau{.patience = 0, .fires = ds::plateau::at_patience}) ==
        "plateau: patience must be at least 1 if it fires at patience, is 0");
}

TEST_CASE("bad arguments inside others are found, however deep") {
  std::string const inner = "step: factor must be finite and above 0, is 0";
  ds::step const bad{1, 0, 1};
  CHECK(complaint(ds::warmup<ds::step>{4, bad}) == inner);
  CHECK(complaint(ds::swa_rate<ds::step>{bad}) == inner);
  CHECK(complaint(ds::scaled{2, ds::clamped{0, 1, ds::delayed{1, ds::per_epoch{bad, 2}}}}) == inner);
  CHECK(complaint(ds::join{{4}, ds::constant{1}, bad}) == inner);
  CHECK(complaint(ds::chained{ds::constant{1}, ds::constant{1}, bad}) == inner);
  CHECK(complaint(ds::warmup<ds::step>{4, {1, 0.5, 1}}) == "");
}

TEST_CASE("schedules: a peak, a start or a number of steps that was forgotten is refused, and is not 0") {
  CHECK(complaint(ds::cosine{.steps = 10}) == "cosine: peak must be set to a finite value, is nan");
  CHECK(complaint(ds::cosine{.peak = 0.1}) == "cosine: steps must be in [1, 2^62], is 0");
  CHECK(complaint(ds::warmup<ds::cosine>{.steps = 5, .then = {.peak = 0.1}}) ==
        "cosine: steps must be in [1, 2^62], is 0");
  CHECK(complaint(ds::one_cycle{.steps = 10}) == "one_cycle: peak must be set to a finite value, is nan");
  CHECK(complaint(ds::one_cycle{.peak = 0.1}) == "one_cycle: steps must be in [1, 2^62], is 0");
  CHECK(complaint(ds::wsd{.stable = 10}) == "wsd: peak must be set to a finite value, is nan");
  CHECK(complaint(ds::inverse_sqrt{.steps = 10}) == "inverse_sqrt: peak must be set to a finite value, is nan");
  CHECK(complaint(ds::step{.every = 10}) == "step: initial must be set to a finite value, is nan");
  CHECK(complaint(ds::exponential{.factor = 0.9}) == "exponential: initial must be set to a finite value, is nan");
}
