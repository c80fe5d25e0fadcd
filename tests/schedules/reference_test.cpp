// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Every schedule of PyTorch or optax, compared with theirs at every step; the values are in
// reference/values_schedules.txt.
#include <descent/optimizer.hpp>
#include <descent/presets/schedules.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/combine.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/cycles.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/table.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/larger.hpp"
#include "support/message.hpp"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace ds = descent;
namespace pt = descent::preset::torch;
namespace ox = descent::preset::optax;

namespace {

constexpr double base = 0.3;
using function = std::function<double(std::int64_t)>;

struct recorded {
  std::string name, peer;
  std::vector<std::int64_t> steps;
  std::vector<double> values;
};

std::vector<recorded> read() {
  std::ifstream in(test::tests_dir() + "/reference/values_schedules.txt");
  REQUIRE(in);
  std::vector<recorded> all;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind, word;
    if (!(words >> kind) || kind[0] == '#') continue;
    recorded r;
    words >> r.name >> r.peer;
    if (kind == "far") words >> r.steps.emplace_back();
    else REQUIRE(kind == "case");
    while (words >> word) r.values.push_back(std::stod(word));
    if (kind == "case")
      for (std::size_t t = 0; t < r.values.size(); ++t) r.steps.push_back(std::int64_t(t));
    REQUIRE(r.values.size() == r.steps.size());
    REQUIRE(!r.values.empty());
    all.push_back(r);
  }
  return all;
}

recorded one(std::string const& name, std::string const& peer) {
  for (recorded const& r : read())
    if (r.name == name && r.peer == peer) return r;
  FAIL("no case " << name << ' ' << peer);
  return {};
}

/// A schedule as a function; checks its fields.
template <ds::schedule S> function checked(S const& s) {
  ds::detail::check_schedule(s);
  return s;
}

double metric(int i, int seed) {
  double const x = 3.0 / (1 + (i % 37) * 0.2) + 0.01 * ((i * 37 + seed) % 11) - 0.002 * i;
  return i % 29 == 17 ? std::nan("") : x;
}

function watching(ds::plateau const& p) {
  p.check();
  std::vector<double> values;
  auto s = p.start();
  for (int i = 0; i < 100; ++i) {
    double const before = s.value;
    bool const reduced = p.next(s, metric(i, 5));
    CHECK(reduced == (s.value < before));
    values.push_back(s.value);
  }
  return [values](std::int64_t t) { return values.at(std::size_t(t)); };
}

std::map<std::string, function> ours() {
  std::map<std::string, function> m;
  m["lambda"] = checked([](std::int64_t t) { return base / (1 + double(t)); });
  m["multiplicative"] =
      checked(ds::multiplicative<20>(base, [](std::int64_t t) { return 1 - 1 / double((t + 1) * (t + 1)); }));
  m["step"] = checked(ds::step{base, 0.3, 5});
  m["multi_step"] = checked(ds::multi_step<4>{.initial = base, .factor = 0.5, .at = {4, 9, 9, 20}});
  m["ConstantLR"] = checked(pt::ConstantLR(base, 0.25, 6));
  m["LinearLR"] = checked(pt::LinearLR(base, 0.2, 0.9, 7));
  m["exponential"] = checked(ds::exponential{.initial = base, .factor = 0.9});
  m["PolynomialLR"] = checked(pt::PolynomialLR(base, 11, 1.5));
  m["PolynomialLR_2"] = checked(pt::PolynomialLR(base, 11, 2));
  m["CosineAnnealingLR"] = checked(pt::CosineAnnealingLR(base, 10, 0.02));
  m["CosineAnnealingLR_1"] = checked(pt::CosineAnnealingLR(base, 1, 0.02));
  m["cosine_restarts"] = checked(ds::cosine_restarts{base, 0.01, 9});
  m["cosine_restarts_2"] = checked(ds::cosine_restarts{base, 0.01, 5, 2});
  m["cosine_restarts_3"] = checked(ds::cosine_restarts{base, 0.01, 3, 3});
  m["cosine_restarts_fractional"] = checked(ds::cosine_restarts{base, 0.01, 3 * 8, 2});

  std::map<std::string, ds::cycles> const modes = {{"triangular", ds::cycles::triangular},
                                                   {"triangular2", ds::cycles::triangular2},
                                                   {"exp_range", ds::cycles::exp_range}};
  for (auto const& [name, mode] : modes) {
    m["cyclic_" + name + "_lr"] = checked(ds::cyclic{0.01, 0.5, 4, 8, mode, 0.97});
    m["cyclic_" + name + "_momentum"] = checked(ds::cyclic_momentum{0.8, 0.9, 4, 8, mode, 0.97});
  }
  m["cyclic_even"] = checked(ds::cyclic{.base = 0.01, .peak = 0.5, .up = 4});
  for (bool three : {false, true})
    for (auto shape : {ds::anneal::cosine, ds::anneal::linear}) {
      bool const cosine = shape == ds::anneal::cosine;
      auto const name = std::string("one_cycle_") + (three ? '3' : '2') + (cosine ? "_cos" : "_linear");
      m[name + "_lr"] = checked(ds::one_cycle{.peak = 0.5, .steps = 37, .shape = shape, .three_phases = three});
      m[name + "_momentum"] = checked(ds::one_cycle_momentum{.steps = 37, .shape = shape, .three_phases = three});
    }
  m["one_cycle_no_rise"] = checked(ds::one_cycle{.peak = 0.5, .steps = 20, .rise = 0.02});
  m["swa_rate_0"] = checked(ds::swa_rate<ds::exponential>{{base, 0.95}, 3, 0.05, 0});
  m["LinearLR_0"] = checked(pt::LinearLR(base, 1. / 3, 1, 0));
  m["PolynomialLR_0"] = checked(pt::PolynomialLR(base, 0));
  for (auto shape : {ds::anneal::cosine, ds::anneal::linear})
    m[shape == ds::anneal::cosine ? "swa_rate_cos" : "swa_rate_linear"] =
        checked(ds::swa_rate<ds::exponential>{{base, 0.95}, 10, 0.05, 8, shape});

  // PyTorch's next scheduler starts from the initial rate, wherever the previous one ended
  m["sequential"] = checked(
      ds::join{{5, 20}, pt::LinearLR(base, 0.1, 1, 5), ds::exponential{base, 0.9}, pt::CosineAnnealingLR(base, 10)});
  m["product"] = checked(ds::chained{pt::LinearLR(base, 0.1, 1, 5), ds::exponential{1, 0.9}, ds::step{1, 0.5, 7}});

  constexpr std::int64_t long_ago = std::int64_t{1} << 40;
  m["step_far"] = checked(ds::step{base, 0.9, (std::int64_t{1} << 36) + 5});
  m["multi_step_far"] =
      checked(ds::multi_step<4>{base, 0.5, {4, (std::int64_t{1} << 31) + 7, std::int64_t{1} << 39, long_ago + 1}});
  m["exponential_far"] = checked(ds::exponential{base, 1 - 0x1p-41});
  m["lambda_far"] = checked([](std::int64_t t) { return base / (1 + double(t) * 0x1p-38); });
  m["linear_far"] = checked(pt::LinearLR(base, 0.2, 0.9, 2 * long_ago + 1));
  m["polynomial_far"] = checked(pt::PolynomialLR(base, 2 * long_ago + 1, 2));
  m["cosine_far"] = checked(pt::CosineAnnealingLR(base, 2 * long_ago + 1, 0.02));
  m["cosine_restarts_far"] = checked(ds::cosine_restarts{base, 0.01, 9});
  m["cosine_restarts_far_2"] = checked(ds::cosine_restarts{base, 0.01, 5, 2});
  m["cyclic_far"] = checked(ds::cyclic{0.01, 0.5, 4, 12});
  m["cyclic_exp_range_far"] = checked(ds::cyclic{0.01, 0.5, 3, 13, ds::cycles::exp_range, 1 - 0x1p-41});
  m["one_cycle_far"] = checked(ds::one_cycle{.peak = 0.5, .steps = 2 * long_ago});
  m["one_cycle_far_3"] = checked(ds::one_cycle{.peak = 0.5, .steps = 2 * long_ago, .three_phases = true});

  m["linear_onecycle_3"] = checked(ox::linear_onecycle_schedule(3, 0.3));
  m["cosine_onecycle_3"] = checked(ox::cosine_onecycle_schedule(3, 0.3));
  m["piecewise_constant_0"] = checked(ox::piecewise_constant_schedule<2>(0.3, {0, 3}, {0.5, 0.2}));
  m["piecewise_linear_0"] = checked(ox::piecewise_interpolate_schedule<2>(ds::anneal::linear, 0.3, {0, 3}, {0.5, 0.2}));
  m["warmup_cosine_falls"] = checked(ox::warmup_cosine_decay_schedule(0.5, 0.3, 4, 10, 0.01));
  m["warmup_cosine_zero"] = checked(ox::warmup_cosine_decay_schedule(0, 0, 4, 10, 0.01));
  m["warmup_exponential_falls"] = checked(ox::warmup_exponential_decay_schedule(0.5, 0.3, 4, 3, 0.5));
  m["cosine_decay_far"] = checked(ox::cosine_decay_schedule(0.3, 2 * long_ago + 1, 0.1));
  m["exponential_decay_far"] = checked(ox::exponential_decay(0.3, long_ago / 4 + 1, 0.5));
  m["constant"] = checked(ds::constant{base});
  m["linear"] = checked(ox::linear_schedule(0.3, 0.05, 12, 4));
  m["linear_0"] = checked(ox::linear_schedule(0, 0.3, 0));
  m["polynomial"] = checked(ox::polynomial_schedule(0.3, 0.05, 2.5, 12, 4));
  m["piecewise_constant"] = checked(ox::piecewise_constant_schedule<3>(0.3, {5, 12, 20}, {0.5, 0.2, 3}));
  m["piecewise_linear"] =
      checked(ox::piecewise_interpolate_schedule<3>(ds::anneal::linear, 0.3, {5, 12, 20}, {0.5, 0.2, 3}));
  m["piecewise_cosine"] =
      checked(ox::piecewise_interpolate_schedule<3>(ds::anneal::cosine, 0.3, {5, 12, 20}, {0.5, 0.2, 3}));
  for (bool stairs : {false, true}) {
    std::string const name = stairs ? "exponential_decay_stairs_" : "exponential_decay_smooth_";
    m[name + "0.4"] = checked(ox::exponential_decay(0.3, 6, 0.4, 5, stairs, 0.03));
    m[name + "1.5"] = checked(ox::exponential_decay(0.3, 6, 1.5, 5, stairs, 0.9));
  }
  m["exponential_decay_free"] = checked(ox::exponential_decay(0.3, 6, 0.5));
  m["exponential_decay_0"] = checked(ox::exponential_decay(0.3, 6, 0));
  m["cosine"] = checked(ox::cosine_decay_schedule(0.3, 30, 0.1));
  m["cosine_exponent"] = checked(ox::cosine_decay_schedule(0.3, 30, 0.1, 1.7));
  m["linear_onecycle"] = checked(ox::linear_onecycle_schedule(50, 0.3));
  m["cosine_onecycle"] = checked(ox::cosine_onecycle_schedule(50, 0.3));
  m["warmup_constant"] = checked(ox::warmup_constant_schedule(0.03, 0.3, 8));
  m["warmup_cosine"] = checked(ox::warmup_cosine_decay_schedule(0.03, 0.3, 8, 40, 0.01, 1.5));
  m["warmup_exponential"] = checked(ox::warmup_exponential_decay_schedule(0.03, 0.3, 8, 10, 0.5, 3, true, 0.06));
  m["sgdr"] = checked(ds::join{{12, 32}, ox::warmup_cosine_decay_schedule(0, 0.3, 3, 12, 0.01),
                               ox::warmup_cosine_decay_schedule(0, 0.2, 3, 20, 0.01),
                               ox::warmup_cosine_decay_schedule(0, 0.1, 3, 28, 0.01)});
  m["join"] = checked(ds::join{{10, 20}, ds::linear{0.1, 0.3, 10}, ds::constant{0.3}, ds::cosine{0.3, 0, 10}});

  using p = ds::plateau;
  m["plateau_min_rel"] = watching({.initial = base, .factor = 0.5, .patience = 2, .relative = 1e-2});
  m["plateau_min_abs"] =
      watching({.initial = base, .factor = 0.5, .patience = 1, .cooldown = 3, .relative = 0, .absolute = 0.05});
  m["plateau_max_rel"] = watching({.initial = base, .factor = 0.3, .patience = 0, .cooldown = 1, .relative = 1e-3,
                                   .floor = 0.01, .metric = p::larger_is_better});
  m["plateau_max_abs"] = watching({.initial = base, .factor = 0.5, .patience = 3, .relative = 0, .absolute = 0.1,
                                   .eps = 0.01, .metric = p::larger_is_better});
  m["plateau_patience"] = watching({.factor = 0.5, .patience = 3, .cooldown = 2, .relative = 1e-2, .eps = 0,
                                    .fires = p::at_patience});
  m["plateau_mean"] = watching({.factor = 0.5, .patience = 2, .every = 4, .relative = 1e-3, .absolute = 1e-2,
                                .floor = 0.05, .eps = 0, .fires = p::at_patience});
  return m;
}

/// Where PyTorch's chained form is not a function of the step; each has its own test below.
std::set<std::string> const different = {"one_cycle_past", "product_of_cosine", "ConstantLR_0",
                                         "changed_by_hand", "MultiStepLR_0", "restart_by_logarithm"};

/// A parameter of two elements whose gradients are 1 and 3 times itself, as the generator trains it: the first element
/// after even steps, the second after odd ones.
template <class Rule, class Cycle> std::vector<double> trained(Rule const& rule, Cycle const& cycle) {
  double p[2] = {1, -2}, g[2];
  ds::parameters<double> params;
  params.add("p", p, g, 2);
  ds::optimizer opt{params, rule, cycle};
  std::vector<double> values;
  for (int t = 0; t < 20; ++t) {
    g[0] = p[0], g[1] = 3 * p[1];
    opt.step();
    values.push_back(p[t % 2]);
  }
  return values;
}

}  // namespace

TEST_CASE("schedules are PyTorch's, chained and closed, and optax's, at every step") {
  auto const functions = ours();
  std::set<std::string> seen;
  int moving_far_away = 0;  // rows at 2^40 and beyond that are not the end of a schedule
  for (recorded const& r : read()) {
    if ((different.contains(r.name) && r.peer == "chained") || r.peer == "trained") continue;
    CAPTURE(r.name);
    CAPTURE(r.peer);
    REQUIRE(functions.contains(r.name));
    seen.insert(r.name);
    double largest = 0;
    for (double v : r.values) largest = std::max(largest, std::fabs(v));
    // a chain of products drifts; they round the arguments of the cosine of pi t / T and of a power t / T; and optax's
    // (1 + cos) / 2 loses digits near 0
    bool const swings = r.peer == "closed" && r.name.starts_with("CosineAnnealingLR");
    bool const powers = r.name.starts_with("exponential_decay");
    double const near_zero = (r.peer == "optax" ? 0.5 : 1e-3) * largest;
    auto const& s = functions.at(r.name);
    std::int64_t const t0 = r.steps[0];
    moving_far_away += t0 >= std::int64_t{1} << 40 && r.values[0] != 0 && s(t0) != s(t0 - t0 / 4);
    double const allowed = r.peer == "chained" ? 1e-13 : powers ? 1e-14 : 1e-15;
    for (std::size_t i = 0; i < r.values.size(); ++i) {
      CAPTURE(r.steps[i]);
      CHECK(std::fabs(s(r.steps[i]) - r.values[i]) <=
            (swings ? 1e-15 * double(r.steps[i] + 1) : allowed) * (std::fabs(r.values[i]) + near_zero));
    }
  }
  CHECK(seen.size() == functions.size());
  CHECK(seen.size() >= 70);
  CHECK(moving_far_away >= 20);
}

TEST_CASE("trap of OneCycleLR: one step past the end the rate goes up again; here it stays") {
  recorded const r = one("one_cycle_past", "chained");
  ds::one_cycle const s{.peak = 0.5, .steps = 10};
  for (std::int64_t t = 0; t < 10; ++t) CHECK(s(t) == doctest::Approx(r.values[std::size_t(t)]).epsilon(1e-13));
  CHECK(r.values[10] > 1e4 * r.values[9]);
  CHECK(s(10) == s(9));
  CHECK(s(std::int64_t{1} << 40) == s(9));
}

TEST_CASE("trap of OneCycleLR: a rise of one step divides 0 by 0; here it begins at the peak") {
  ds::one_cycle const s{.peak = 0.5, .steps = 10, .rise = 0.1};  // PyTorch: ZeroDivisionError
  s.check();
  CHECK(s(0) == 0.5);
  CHECK(s(1) < 0.5);
  CHECK(ds::one_cycle{.peak = 0.5, .steps = 1, .rise = 0}(0) == ds::one_cycle{.peak = 0.5, .steps = 1, .rise = 0}(7));
}

TEST_CASE("one cycle of rate and momentum moves parameters as PyTorch's does, with SGD and AdamW") {
  for (bool three : {false, true}) {
    ds::one_cycle const c{.peak = 0.05, .steps = 20, .three_phases = three};
    auto const name = [&](char const* rule) { return std::string("one_cycle_") + rule + (three ? "_3" : "_2"); };
    auto const same = [&](char const* rule, std::vector<double> const& values) {
      recorded const r = one(name(rule), "trained");
      REQUIRE(values.size() == r.values.size());
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::fabs(values[i] - r.values[i]) <= 1e-14);
    };
    same("sgd", trained(ds::sgd{.lr = 1, .momentum = 0.5}, ds::one_cycle_of<&ds::sgd::momentum>(c)));
    same("adamw", trained(ds::adamw{.weight_decay = 0.1}, ds::one_cycle_of<&ds::adamw::beta1>(c)));
    auto const other = trained(ds::sgd{.momentum = 0.5}, ds::one_cycle_of<&ds::sgd::momentum>(c, 0.8, 0.9));
    CHECK(std::fabs(other[9] - one(name("sgd"), "trained").values[9]) > 1e-3);
  }
}

TEST_CASE("trap of ConstantLR: a factor of 0 divides by 0 when it is taken back; here it is a value") {
  auto const s = pt::ConstantLR(base, 0, 3);  // PyTorch: ZeroDivisionError at step 3
  s.check();
  CHECK(s(2) == 0);
  CHECK(s(3) == base);
}

TEST_CASE("trap of CosineAnnealingWarmRestarts: step(e) finds its cycle by a logarithm, which rounds; here it counts") {
  CHECK(one("restart_by_logarithm", "chained").values[0] == 0.01);  // the end of the previous cycle, at e = 363
  ds::cosine_restarts const s{base, 0.01, 3, 3};
  CHECK(s(363) == base);  // 363 = 3 + 9 + 27 + 81 + 243
  CHECK(s(362) < 0.011);
}

TEST_CASE("trap of CyclicLR: triangular2 overflows after 1024 cycles; here it continues towards 0") {
  ds::cyclic const s{.base = 0.01, .peak = 0.5, .up = 1, .down = 1, .mode = ds::cycles::triangular2};
  CHECK(s(2 * 10 + 1) == doctest::Approx(0.01 + 0.49 / 1024).epsilon(1e-15));
  for (std::int64_t t : {2047, 2049, 5001}) CHECK(s(t) == 0.01);  // PyTorch: OverflowError at step 2048
}

TEST_CASE("trap of MultiStepLR: a milestone of 0 applies at once; here it is refused") {
  CHECK(one("MultiStepLR_0", "chained").values[0] == base * 0.5);
  CHECK_THROWS_AS((ds::multi_step<2>{base, 0.5, {0, 3}}.check()), std::invalid_argument);
}

TEST_CASE("trap of LinearLR and PolynomialLR: of 0 steps they stay at their start; so do their names here, alone") {
  for (double v : one("LinearLR_0", "chained").values) CHECK(v == base * (1. / 3));
  for (double v : one("PolynomialLR_0", "chained").values) CHECK(v == base);
  CHECK(pt::LinearLR(base, 0.5, 1, 0)(0) == base / 2);
  CHECK(ds::linear{0.1, base, 0}(0) == base);
  CHECK(ds::polynomial{base, 0, 1, 0}(0) == 0);
}

TEST_CASE("a warm-up of optax from another rate to a peak of 0 is refused, because it is no share of the peak") {
  std::string const rest = ": peak_value must be other than 0, because the warmup is a part of it, is 0";
  CHECK(test::message([] { ox::warmup_cosine_decay_schedule(0.5, 0, 4, 10); }) ==
        "warmup_cosine_decay_schedule" + rest);
  CHECK(test::message([] { ox::warmup_exponential_decay_schedule(0.5, 0, 4, 3, 0.5); }) ==
        "warmup_exponential_decay_schedule" + rest);
}

TEST_CASE("trap of ConstantLR: of 0 steps it never ends; here that is refused") {
  for (double v : one("ConstantLR_0", "chained").values) CHECK(v == base * 0.25);
  CHECK_THROWS_AS(pt::ConstantLR(base, 0.25, 0).check(), std::invalid_argument);
}

TEST_CASE("trap of ChainedScheduler: PyTorch's product is none where a scheduler adds a floor; here it always is") {
  recorded const r = one("product_of_cosine", "chained");
  auto const factors = ds::chained{ds::cosine{base, 0.02, 30}, ds::step{1, 0.5, 7}};
  for (std::size_t t = 0; t < 7; ++t) CHECK(factors(std::int64_t(t)) == doctest::Approx(r.values[t]).epsilon(1e-12));
  double apart = 0;
  for (std::size_t t = 7; t < 30; ++t) {
    double const exact = ds::cosine{base, 0.02, 30}(std::int64_t(t)) * std::pow(0.5, double(t / 7));
    CHECK(factors(std::int64_t(t)) == doctest::Approx(exact).epsilon(1e-15));
    apart = test::larger(apart, std::fabs(factors(std::int64_t(t)) - r.values[t]));
  }
  CHECK(apart > 0.01);  // their floor of 0.02 is not multiplied
}

TEST_CASE("trap of optax: a warm-up of 0 steps is a rate of 0 for ever; here it is no warm-up") {
  for (double v : one("linear_0", "optax").values) CHECK(v == 0);
  ds::linear const rise{0, base, 0};
  ds::warmup<ds::constant> const none{.steps = 0, .then = {base}};
  for (std::int64_t t : {0, 1, 5}) {
    CHECK(rise(t) == base);
    CHECK(none(t) == base);
    CHECK(ox::warmup_constant_schedule(0, base, 0)(t) == 0);  // under optax's name it does what optax does
  }
}

TEST_CASE("trap of schedulers with state: a step evaluated twice or late has the value of that step") {
  auto const s = ds::join{{10}, ds::linear{0, 1, 10}, ds::cosine_restarts{1, 0, 5, 2}};
  std::vector<double> forward;
  for (std::int64_t t = 0; t < 60; ++t) forward.push_back(s(t));
  for (std::int64_t t = 59; t >= 0; t -= 7) CHECK(s(t) == forward[std::size_t(t)]);
}

TEST_CASE("trap of chained forms: a rate changed by hand stays changed; here it is a factor that is written down") {
  recorded const r = one("changed_by_hand", "chained");
  ds::cosine const c{base, 0, 20};
  ds::chained const both{c, ds::piecewise_constant<1>{{8}, {1, 0.5}}};
  for (std::size_t t = 0; t < 20; ++t) {
    CHECK(both(std::int64_t(t)) == doctest::Approx(r.values[t]).epsilon(1e-12));
    CHECK((std::fabs(c(std::int64_t(t)) - r.values[t]) < 1e-12) == (t < 8));  // the function alone does not change
  }
}

TEST_CASE("chained and closed forms of PyTorch agree to 1e-13, and the closed form is the function to 1e-15") {
  double drift = 0;
  std::size_t pairs = 0;
  for (recorded const& r : read()) {
    if (r.peer != "closed" || r.steps.size() == 1) continue;
    recorded const other = one(r.name, "chained");
    ++pairs;
    for (std::size_t t = 0; t < r.values.size(); ++t)
      drift = test::larger(drift, std::fabs(r.values[t] - other.values[t]));
  }
  CHECK(pairs >= 8);
  CHECK(drift > 0);  // a chain of products rounds at each step
  CHECK(drift < 1e-13);
}

TEST_CASE("trap of plateaus: optax fires when the count equals patience, one metric before PyTorch") {
  ds::plateau p{.patience = 3, .eps = 0};
  auto const metrics_until_reduced = [&] {
    auto s = p.start();
    p.next(s, 1);
    int n = 1;
    while (!p.next(s, 1)) ++n;
    return n;
  };
  CHECK(metrics_until_reduced() == 4);
  p.fires = ds::plateau::at_patience;
  CHECK(metrics_until_reduced() == 3);
}

TEST_CASE("trap of plateaus: a metric that is not a number is bad and never the best") {
  ds::plateau const p{.patience = 1, .cooldown = 0};
  auto s = p.start();
  CHECK(!p.next(s, std::nan("")));
  CHECK(std::isinf(s.best));
  CHECK(s.bad == 1);
  CHECK(p.next(s, std::nan("")));
  CHECK(!p.next(s, 2));
  CHECK(s.best == 2);
}

TEST_CASE("trap of plateaus: a relative threshold is no threshold where metrics are negative") {
  ds::plateau p{.patience = 5, .relative = 0.1};  // as in PyTorch: -0.95 < -1 (1 - 0.1)
  auto s = p.start();
  p.next(s, -1);
  p.next(s, -0.95);
  CHECK(s.best == -0.95);
  p.relative = 0, p.absolute = 0.1;
  s = p.start();
  p.next(s, -1);
  p.next(s, -0.95);
  CHECK(s.best == -1);
}
