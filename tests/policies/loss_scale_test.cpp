// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The loss scale: replays of torch.amp.GradScaler (tests/reference/loss_scale.txt, whose header describes the format),
// models of apex and Megatron written here from their behaviour, and the laws of floor, ceiling and patience.
#include <descent/core/policy.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/training/loss_scaler.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/message.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds = descent;
using ds::dynamic_loss_scale, ds::static_loss_scale, ds::loss_scale_state, ds::refill;

static_assert(ds::policy<dynamic_loss_scale> && ds::policy<static_loss_scale>);

namespace {

constexpr double smallest = 0x1p-127;  // the smallest power of two whose inverse is finite in float
constexpr double largest = std::numeric_limits<float>::max();
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

float float_of(std::string const& hex) { return std::bit_cast<float>(std::uint32_t(std::stoul(hex, nullptr, 16))); }

bool overflows(std::string const& pattern, std::size_t step) {
  int const digit = std::stoi(pattern.substr(step / 4, 1), nullptr, 16);
  return digit >> (3 - step % 4) & 1;
}

/// Scale and tracker after a step.
struct after {
  float scale;
  int tracker;
};
std::vector<after> decoded(float init, std::string const& text) {
  std::vector<after> all;
  after now{init, 0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t const end = text.find_first_of(".=;", i);
    REQUIRE(end != std::string::npos);
    std::string const number = text.substr(i, end - i);
    if (text[end] == '.') {
      for (int n = number.empty() ? 1 : std::stoi(number); n > 0; --n) ++now.tracker, all.push_back(now);
    } else {
      if (text[end] == ';') now.scale = float_of(number);
      now.tracker = 0;
      all.push_back(now);
    }
    i = end;
  }
  return all;
}

/// apex's update_scale_hysteresis, on one found_inf.
struct apex_model {
  float scale;
  int growth_tracker = 0, hysteresis_tracker;
  void update(bool found_inf, double growth, double backoff, int interval, int hysteresis) {
    if (found_inf) {
      growth_tracker = 0;
      if (--hysteresis_tracker > 0) return;
      scale = float(double(scale) * backoff);
    } else {
      if (++growth_tracker == interval) {
        if (float const next = float(double(scale) * growth); std::isfinite(next)) scale = next;
        growth_tracker = 0;
      }
      hysteresis_tracker = hysteresis;
    }
  }
};

/// Megatron's DynamicGradScaler.
struct megatron_model {
  float scale;
  int growth_tracker = 0, hysteresis_tracker;
  void update(bool found_inf, float growth, float backoff, int interval, int hysteresis, float min) {
    if (found_inf) {
      growth_tracker = 0;
      if (--hysteresis_tracker <= 0) scale = std::fmax(scale * backoff, min);
    } else if (++growth_tracker == interval) {
      growth_tracker = 0;
      hysteresis_tracker = hysteresis;
      scale = scale * growth;
    }
  }
};

/// Compares forty random steps of the policy with a model of another scaler.
template <class Model, class Uniform, class Update>
bool agrees(dynamic_loss_scale const& policy, Model const& model, Uniform const& uniform, Update const& update_model) {
  auto s = policy.start();
  double const rate = uniform(0, 0.6);
  bool same = true;
  for (int i = 0; i < 40; ++i) {
    bool const bad = uniform(0, 1) < rate;
    policy.next(s, !bad);
    update_model(bad);
    same = same && s.scale == model.scale && s.good == model.growth_tracker &&
           s.left == (model.hysteresis_tracker > 0 ? model.hysteresis_tracker : 0);
  }
  return same;
}

loss_scale_state run(dynamic_loss_scale const& policy, std::string const& steps) {
  auto s = policy.start();
  for (char c : steps) policy.next(s, c == '.');
  return s;
}

}  // namespace

TEST_CASE("loss scale: every transition of torch.amp.GradScaler") {
  std::ifstream in(test::tests_dir() + "/reference/loss_scale.txt");
  REQUIRE(in);
  int sequences = 0, steps = 0, grown = 0, lowered = 0, refused = 0, wrong = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string init, pattern, text;
    double growth, backoff;
    int interval;
    std::size_t count;
    words >> init >> growth >> backoff >> interval >> count >> pattern >> text;
    REQUIRE(!words.fail());
    dynamic_loss_scale const policy{.init = float_of(init),
                                    .growth = growth,
                                    .backoff = backoff,
                                    .interval = interval,
                                    .min = std::numeric_limits<float>::denorm_min(),  // check() requires an inverse
                                    .max = largest};
    auto const expected = decoded(float_of(init), text);
    REQUIRE(expected.size() == count);
    auto s = policy.start();
    for (std::size_t i = 0; i < count && wrong < 5; ++i) {
      float const before = s.scale;
      policy.next(s, !overflows(pattern, i));
      grown += s.scale > before;
      lowered += s.scale < before;
      refused += s.good == 0 && s.scale == before && !overflows(pattern, i);
      if (s.scale != expected[i].scale || s.good != expected[i].tracker) {
        ++wrong;
        CAPTURE(line);
        CAPTURE(i);
        CHECK(s.scale == expected[i].scale);
        CHECK(s.good == expected[i].tracker);
      }
      ++steps;
    }
    ++sequences;
  }
  CHECK(wrong == 0);
  CHECK(sequences == 500);
  CHECK(steps >= 47000);
  CHECK(grown >= 1200);
  CHECK(lowered >= 3000);
  CHECK(refused >= 1000);  // growth to infinity
}

TEST_CASE("loss scale: refill::clean_step is apex's update_scale_hysteresis") {
  std::mt19937 random(1);
  auto const uniform = [&](double a, double b) { return std::uniform_real_distribution(a, b)(random); };
  for (int sequence = 0; sequence < 2000; ++sequence) {
    dynamic_loss_scale const policy{.init = double(float(uniform(1, 1e6))),
                                    .growth = uniform(1.01, 4),
                                    .backoff = uniform(0.1, 0.99),
                                    .interval = 1 + int(random() % 6),
                                    .min = smallest,
                                    .max = largest,
                                    .hysteresis = 1 + int(random() % 5)};
    apex_model model{float(policy.init), 0, policy.hysteresis};
    CHECK(agrees(policy, model, uniform, [&](bool bad) {
      model.update(bad, policy.growth, policy.backoff, policy.interval, policy.hysteresis);
    }));
  }
}

TEST_CASE("loss scale: refill::growth is Megatron's DynamicGradScaler") {
  std::mt19937 random(2);
  auto const uniform = [&](double a, double b) { return std::uniform_real_distribution(a, b)(random); };
  for (int sequence = 0; sequence < 2000; ++sequence) {
    // powers of two, for which Megatron's products in float equal ours
    dynamic_loss_scale const policy{.init = std::ldexp(1, int(random() % 20)),
                                    .growth = random() % 2 ? 2. : 4.,
                                    .backoff = random() % 2 ? 0.5 : 0.25,
                                    .interval = 1 + int(random() % 6),
                                    .min = 1,
                                    .max = largest,
                                    .hysteresis = 1 + int(random() % 5),
                                    .refill = refill::growth};
    megatron_model model{float(policy.init), 0, policy.hysteresis};
    CHECK(agrees(policy, model, uniform, [&](bool bad) {
      model.update(bad, float(policy.growth), float(policy.backoff), policy.interval, policy.hysteresis,
                   float(policy.min));
    }));
  }
}

TEST_CASE("loss scale: how the two refills differ") {
  dynamic_loss_scale apex{.init = 1024, .interval = 100, .hysteresis = 2}, megatron = apex;
  megatron.refill = refill::growth;
  CHECK(run(apex, "x").scale == 1024);
  CHECK(run(apex, "xx").scale == 512);
  CHECK(run(apex, "xxx").scale == 256);
  CHECK(run(apex, "x.x.x.x").scale == 1024);
  CHECK(run(megatron, "x.x.x.x").scale == 128);
  megatron.interval = 3;
  CHECK(run(megatron, "x...x").scale == 2048);
  CHECK(run(megatron, "x..x").scale == 512);
}

TEST_CASE("loss scale: it stays within [min, max], and reaches both") {
  dynamic_loss_scale const policy{.init = 10, .growth = 3, .backoff = 0.4, .interval = 1, .min = 1.5, .max = 100};
  CHECK(run(policy, "..").scale == 90);
  CHECK(run(policy, "...").scale == 100);
  CHECK(run(policy, "....").scale == 100);
  CHECK(run(policy, "....x").scale == 40);
  CHECK(run(policy, "xx").scale == float(double(float(10 * 0.4)) * 0.4));
  CHECK(run(policy, "xxx").scale == 1.5);
  CHECK(run(policy, "xxxx").scale == 1.5);
  CHECK(run(policy, "xxxx.").scale == 4.5);
}

TEST_CASE("loss scale: a scale outside [min, max], as from an older checkpoint, is not moved the wrong way") {
  dynamic_loss_scale const policy{.init = 16, .interval = 1, .min = 8, .max = 64};
  loss_scale_state below{.scale = 2};
  policy.next(below, false);
  CHECK(below.scale == 2);
  CHECK(below.stuck == 1);
  policy.next(below, true);
  CHECK(below.scale == 4);
  loss_scale_state above{.scale = 1024};
  policy.next(above, true);
  CHECK(above.scale == 1024);
  policy.next(above, false);
  CHECK(above.scale == 512);
}

TEST_CASE("loss scale: growth that is not finite is refused, and counting starts again") {
  dynamic_loss_scale const policy{.init = 0x1p127, .interval = 2, .max = largest};
  CHECK(run(policy, "..").scale == 0x1p127f);
  CHECK(run(policy, "..").good == 0);
  dynamic_loss_scale const slow{.init = 0x1p127, .growth = 1.5, .interval = 1, .max = largest};
  CHECK(run(slow, ".").scale == 0x1.8p127f);
  CHECK(run(slow, "..").scale == 0x1.8p127f);
}

TEST_CASE("loss scale: 3000 bad steps end at the floor, and after `patience` steps there it is stuck") {
  for (double min : {1.0, 0.1, smallest}) {
    dynamic_loss_scale const policy{.min = min, .patience = 20};
    auto s = policy.start();
    int at_floor = 0;
    for (int i = 0; i < 3000; ++i) {
      at_floor += s.scale == float(min);
      policy.next(s, false);
      CHECK(s.scale > 0);
      CHECK(s.stuck == at_floor);
      CHECK(policy.is_stuck(s) == (at_floor >= 20));
    }
    CHECK(s.scale == float(min));
    CHECK(at_floor > 2800);
    policy.next(s, true);
    CHECK(s.stuck == 0);
    CHECK_FALSE(policy.is_stuck(s));
  }
}

TEST_CASE("loss scale: overflows that are forgiven at the floor count, those above it do not") {
  dynamic_loss_scale const policy{.init = 2, .interval = 2, .hysteresis = 3, .patience = 2};
  CHECK(run(policy, "xx").stuck == 0);
  CHECK(run(policy, "xxx").scale == 1);
  CHECK(run(policy, "xxx").stuck == 0);
  CHECK(run(policy, "xxx.x").stuck == 1);
  CHECK(run(policy, "xxx.xx").stuck == 2);
  CHECK(policy.is_stuck(run(policy, "xxx.xx")));
  CHECK(run(policy, "xxx.xx..").stuck == 0);
}

TEST_CASE("loss scale: a million good steps double it every 2000 until the ceiling") {
  dynamic_loss_scale const policy;
  auto s = policy.start();
  bool right = true;
  for (int i = 1; i <= 1000000; ++i) {
    policy.next(s, true);
    int const growths = i / 2000;
    right = right && s.scale == (growths < 8 ? std::ldexp(65536.f, growths) : 16777216.f) && s.good == i % 2000;
  }
  CHECK(right);
  CHECK(s.stuck == 0);
}

TEST_CASE("loss scale: the count of skips does not overflow") {
  loss_scale_state s{.scale = 1, .stuck = std::numeric_limits<std::int32_t>::max()};
  dynamic_loss_scale{}.next(s, false);
  CHECK(s.stuck == std::numeric_limits<std::int32_t>::max());
}

TEST_CASE("static loss scale: it never moves, and is stuck after `patience` skips in a row") {
  static_loss_scale const policy{.scale = 1000, .patience = 3};
  auto s = policy.start();
  for (bool finite : {true, false, false, true, false, false}) policy.next(s, finite);
  CHECK(s.stuck == 2);
  CHECK_FALSE(policy.is_stuck(s));
  policy.next(s, false);
  CHECK(policy.is_stuck(s));
  for (int i = 0; i < 3000; ++i) policy.next(s, i % 2);
  CHECK(s.scale == 1000);
  CHECK(static_loss_scale{}.start().scale == 128);
}

TEST_CASE("loss scale: settings that are refused") {
  auto const check = [](auto const& policy) { ds::check_rule<float>(policy); };
  CHECK_NOTHROW(check(dynamic_loss_scale{}));
  CHECK_NOTHROW(check(dynamic_loss_scale{.init = 1, .min = 1, .max = 1}));
  CHECK_NOTHROW(check(dynamic_loss_scale{.init = largest, .min = smallest, .max = largest}));
  auto const rejects = [&](dynamic_loss_scale const& policy) { CHECK_THROWS_AS(check(policy), std::invalid_argument); };
  for (double bad : {0., -1., inf, -inf, no_number}) {
    rejects({.init = bad});
    rejects({.growth = bad});
    rejects({.backoff = bad});
    rejects({.min = bad});
    rejects({.max = bad});
    CHECK_THROWS_AS(check(static_loss_scale{.scale = bad}), std::invalid_argument);
  }
  rejects({.growth = 1});
  rejects({.backoff = 1});
  rejects({.init = 0.5});
  rejects({.init = 16777217});
  rejects({.init = 1, .min = 1e-50});
  rejects({.init = 1, .min = smallest / 2});
  rejects({.max = 1e39});
  rejects({.init = 2, .min = 3, .max = 2});
  for (int bad : {0, -1}) {
    rejects({.interval = bad});
    rejects({.hysteresis = bad});
    rejects({.patience = bad});
    CHECK_THROWS_AS(check(static_loss_scale{.patience = bad}), std::invalid_argument);
  }
  CHECK_THROWS_AS(check(static_loss_scale{.scale = 1e39}), std::invalid_argument);
  CHECK_THROWS_AS(check(static_loss_scale{.scale = 1e-50}), std::invalid_argument);
  CHECK_THROWS_WITH(check(dynamic_loss_scale{.growth = 0.5}),
                    "dynamic_loss_scale: growth must be finite and above 1, is 0.5");
  CHECK_THROWS_WITH(check(dynamic_loss_scale{.init = 0.5}), "dynamic_loss_scale: init must be in [min, max], is 0.5");
  CHECK_THROWS_WITH(check(dynamic_loss_scale{.init = 1, .min = 3, .max = 2}),
                    "dynamic_loss_scale: max must be at least min and finite in float, is 2");
}

TEST_CASE("a state is restored if the policy could have reached it, and stays within its counts from there") {
  constexpr int most = std::numeric_limits<int>::max();
  ds::dynamic_loss_scale const policy{.interval = most, .min = 2, .max = 64, .hysteresis = 3};
  ds::loss_scaler scaler{ds::dynamic_loss_scale{.init = 16, .interval = most, .min = 2, .max = 64, .hysteresis = 3}};
  auto const refused = [&](ds::loss_scale_state const& s) {
    auto const bits = [&] { return std::bit_cast<std::array<int, 4>>(scaler.state()); };
    auto const before = bits();
    std::string const said = test::message([&] { scaler.set_state(s); });
    if (!said.empty()) CHECK(bits() == before);
    return said;
  };
  float const none = std::numeric_limits<float>::quiet_NaN();
  CHECK(refused({.scale = 1}) == "loss scale: the scale must be in [2, 64], is 1");
  CHECK(refused({.scale = 65}) == "loss scale: the scale must be in [2, 64], is 65");
  CHECK(refused({.scale = none}) ==
        "loss scale: the scale must be above 0 and, like its inverse, finite in float, is nan");
  CHECK(refused({.scale = 4, .good = -1}) == "loss scale: the count of clean steps must be in [0, 2147483647], is -1");
  CHECK(refused({.scale = 4, .left = -5}) == "loss scale: the count of overflows left must be in [0, 3], is -5");
  CHECK(refused({.scale = 4, .left = 4}) == "loss scale: the count of overflows left must be in [0, 3], is 4");
  CHECK(refused({.scale = 4, .stuck = -1}) == "loss scale: the count of skips in a row must be at least 0, is -1");
  CHECK(test::message([&] { scaler.update(128); }) == "loss scale: the scale must be in [2, 64], is 128");
  ds::loss_scale_state s{.scale = 4, .good = most, .left = 3, .stuck = most};
  CHECK(refused(s) == "");
  policy.next(s, true);
  CHECK(s.scale == 8);
  CHECK(s.good == 0);
  s = {.scale = 2, .left = 0, .stuck = most};
  policy.next(s, false);
  CHECK(s.scale == 2);
  CHECK(s.stuck == most);

  ds::loss_scaler same{ds::static_loss_scale{}};
  CHECK(test::message([&] { same.set_state({.stuck = -1}); }) ==
        "loss scale: the count of skips in a row must be at least 0, is -1");
}
