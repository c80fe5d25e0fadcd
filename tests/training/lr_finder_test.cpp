// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The learning-rate finder: what it measures, what it suggests, and that it leaves no trace.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/training/lr_finder.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/problem.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds = descent;
using doctest::Approx;
using test::message, test::same_bits;

namespace {

/// Half the squared distance of each element from 1, times a curvature.
template <class Value> struct bowl {
  std::vector<Value> value, gradient;
  double curvature = 1;
  ds::parameters<Value> params;

  explicit bowl(std::size_t n = 40, double c = 1) : value(n), gradient(n), curvature(c) {
    for (std::size_t i = 0; i < n; ++i) value[i] = Value(float(i % 7) - 2.5f);
    params.add("a", value.data(), gradient.data(), n / 2);
    params.add("b", value.data() + n / 2, gradient.data() + n / 2, n - n / 2, ds::group{1});
  }
  double loss_and_gradients(double scale = 1) {
    double loss = 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      double const d = ds::widen<double>(value[i]) - 1;
      loss += curvature * d * d / 2 / double(value.size());
      gradient[i] = Value(float(curvature * d * scale));
    }
    return loss;
  }
};

/// Trains two twins, sweeps over one of them, and continues: both end with the same bits.
template <class Value, class Rule, class... Ps> void leaves_no_trace(Rule rule, Ps... ps) {
  bowl<Value> x, y;
  ds::optimizer a{x.params, rule, ps...}, b{y.params, rule, ps...};
  auto const train = [](auto& bowl, auto& opt, int steps) {
    for (int i = 0; i < steps; ++i) bowl.loss_and_gradients(opt.loss_scale()), opt.step();
  };
  train(x, a, 5), train(y, b, 5);
  auto const curve = ds::find_learning_rate(a, x.params, {.lowest = 1e-4, .highest = 1e3, .steps = 30},
                                            [&](auto& trial) { return x.loss_and_gradients(trial.loss_scale()); });
  CHECK(curve.points.size() > 3);
  CHECK(same_bits(x.value, y.value));
  CHECK(same_bits(x.gradient, y.gradient));
  CHECK(a.report().step == b.report().step);
  CHECK(a.report().learning_rate == b.report().learning_rate);
  CHECK(a.loss_scale() == b.loss_scale());
  train(x, a, 7), train(y, b, 7);
  CHECK(same_bits(x.value, y.value));
  CHECK(a.report().step == b.report().step);
  CHECK(a.report().learning_rate == b.report().learning_rate);
}

}  // namespace

TEST_CASE("values, masters, states, averages, memory, t, schedules and loss scale continue undisturbed") {
  leaves_no_trace<float>(ds::sgd{.lr = 0.1, .momentum = 0.9});
  leaves_no_trace<double>(ds::adamw{.lr = 0.1}, ds::learning_rate(ds::cosine{.peak = 0.1, .steps = 12}));
  leaves_no_trace<ds::half>(ds::adamw{.lr = 0.1}, ds::master<float>{},
                            ds::dynamic_loss_scale{.init = 256, .interval = 3}, ds::ema{.decay = 0.9}, ds::lookahead{});
  leaves_no_trace<ds::bfloat16>(ds::adamw{.lr = 0.01}, ds::master_remainder{}, ds::clip_norm{1});
  leaves_no_trace<float>(ds::dog{});
  leaves_no_trace<float>(ds::lamb{.lr = 0.01}, ds::on_plateau{});
  leaves_no_trace<float>(ds::sgd{.lr = 0.1}, ds::accumulate{2}, ds::scale_learning_rate(ds::linear{1, 0, 9}));
}

TEST_CASE("the sweep is exponential, from the lowest to the highest rate, for every group and whatever the schedule") {
  bowl<double> x;
  ds::optimizer opt{x.params, ds::sgd{.lr = 3}, ds::learning_rate(ds::constant{7})};
  opt.group(1).lr = 5;
  std::vector<double> moved;
  double before[2] = {};
  auto const curve = ds::find_learning_rate(
      opt, x.params, {.lowest = 1e-3, .highest = 10, .steps = 5, .smoothing = 0, .diverged = 1e9}, [&](auto& trial) {
        if (trial.report().step > 0) {
          CHECK((before[0] - x.value[0]) == Approx(before[1] - x.value[39]));  // both groups have gradients of 1
          moved.push_back(before[0] - x.value[0]);
        }
        before[0] = x.value[0], before[1] = x.value[39];
        std::fill(x.gradient.begin(), x.gradient.end(), 1.0);
        return 1.0;
      });
  REQUIRE(curve.points.size() == 5);
  CHECK(!curve.diverged);
  double rate = 1e-3;
  for (std::size_t i = 0; i < 5; ++i, rate *= 10) {
    CHECK(curve.points[i].rate == Approx(rate).epsilon(1e-12));
    if (i < 4) CHECK(moved[i] == Approx(rate).epsilon(1e-9));
  }
}

TEST_CASE("the smoothed loss is corrected for its start and ends the sweep at `diverged` times the best") {
  bowl<double> x;
  ds::optimizer opt{x.params, ds::sgd{}};
  double const losses[] = {4, 2, 1, 8, 40, 5, 5};
  int call = 0;
  auto const curve = ds::find_learning_rate(opt, x.params, {.steps = 7, .smoothing = 0.5, .diverged = 4},
                                            [&] { return losses[call++]; });
  CHECK(call == 5);
  CHECK(curve.diverged);
  REQUIRE(curve.points.size() == 5);
  double const means[] = {2, 2, 1.5, 4.75, 22.375};
  double left = 1;
  for (int i = 0; i < 5; ++i) {
    left *= 0.5;
    CHECK(curve.points[i].loss == losses[i]);
    CHECK(curve.points[i].smoothed == Approx(means[i] / (1 - left)).epsilon(1e-14));
  }
  CHECK(curve.minimum().loss == 1);
  CHECK(curve.tenth_of_minimum() == curve.points[2].rate / 10);
  CHECK(curve.steepest() == curve.points[1].rate);
}

TEST_CASE("skipped updates are counted; a sweep that has no others is no curve") {
  bowl<double> x;
  ds::optimizer opt{x.params, ds::sgd{.lr = 0.1}, ds::skip_nonfinite{}};
  ds::lr_sweep const sweep{.lowest = 1e-4, .highest = 1e-2, .steps = 9};
  int calls = 0, bad = 4;
  auto const loss = [&] {
    double const now = x.loss_and_gradients();
    if (calls++ < bad) x.gradient[3] = std::nan("");
    return now;
  };
  auto const curve = ds::find_learning_rate(opt, x.params, sweep, loss);
  CHECK(curve.points.size() == 9);
  CHECK(curve.skipped == 4);
  bad = 1000;
  auto const before = x.value;
  CHECK(message<std::runtime_error>([&] { ds::find_learning_rate(opt, x.params, sweep, loss); }) ==
        "find_learning_rate: every update was skipped, the last one because the gradient of 'a' is not finite");
  CHECK(same_bits(x.value, before));
}

TEST_CASE("a list that is not the optimizer's is refused before anything is touched") {
  bowl<double> x, y;
  ds::optimizer opt{x.params, ds::sgd{.lr = 0.1}};
  auto const refused = [&](ds::parameters<double> const& list) {
    return message<std::invalid_argument>(
        [&] { ds::find_learning_rate(opt, list, {}, [&] { return x.loss_and_gradients(); }); });
  };
  std::string const what = "find_learning_rate: the parameters must be the optimizer's: ";
  CHECK(refused(y.params) == what + "'a' has another address or length");
  ds::parameters<double> one, renamed;
  one.add("a", x.value.data(), x.gradient.data(), 20);
  CHECK(refused(one) == what + "it has 2, got 1");
  renamed.add("a", x.value.data(), x.gradient.data(), 20);
  renamed.add("c", x.value.data() + 20, x.gradient.data() + 20, 20);
  CHECK(refused(renamed) == what + "number 1 is 'b', got 'c'");
}

TEST_CASE("what it suggests for descent on a bowl lies below the largest stable rate and scales with the bowl") {
  for (double c : {0.25, 1., 16.}) {  // stable below 2 / c
    bowl<double> x{40, c};
    ds::optimizer opt{x.params, ds::sgd{}};
    ds::lr_sweep const sweep{.lowest = 1e-5, .highest = 1e4, .steps = 90, .smoothing = 0};
    auto const curve = ds::find_learning_rate(opt, x.params, sweep, [&] { return x.loss_and_gradients(); });
    CAPTURE(c);
    CHECK(curve.diverged);
    CHECK(curve.steepest() < 2 / c);
    CHECK(curve.steepest() > 0.01 / c);
    CHECK(curve.minimum().rate * c > 0.5);
    CHECK(curve.tenth_of_minimum() < 2 / c);
  }
}

TEST_CASE("with accumulate a point is an update, and its loss the mean of the micro-batches") {
  bowl<float> x;
  ds::optimizer opt{x.params, ds::sgd{}, ds::accumulate{3}};
  int calls = 0;
  auto const curve =
      ds::find_learning_rate(opt, x.params, {.steps = 4, .diverged = 1e9}, [&] { return double(++calls); });
  CHECK(calls == 12);
  REQUIRE(curve.points.size() == 4);
  for (int i = 0; i < 4; ++i) CHECK(curve.points[i].loss == 3 * i + 2);
}

TEST_CASE("a loss that is not finite ends the sweep, or says so at once; one that throws leaves nothing behind") {
  bowl<float> x;
  ds::optimizer opt{x.params, ds::sgd{.lr = 1}};
  x.loss_and_gradients();
  auto const before = x.value;
  int calls = 0;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  auto const curve = ds::find_learning_rate(opt, x.params, {}, [&] { return ++calls < 6 ? 1.0 : nan; });
  CHECK(curve.diverged);
  CHECK(curve.points.size() == 5);
  CHECK(message<std::runtime_error>([&] { ds::find_learning_rate(opt, x.params, {}, [] { return nan; }); }) ==
        "find_learning_rate: the first loss is not finite, is nan");
  calls = 0;
  CHECK(message<std::domain_error>([&] {
          ds::find_learning_rate(opt, x.params, {}, [&]() -> double {
            if (++calls == 4) throw std::domain_error("no data");
            return x.loss_and_gradients();
          });
        }) == "no data");
  CHECK(calls == 4);
  CHECK(same_bits(x.value, before));
}

TEST_CASE("a loss that falls to the second point and then blows up suggests the first rate") {
  auto const curve = [](std::vector<double> const& losses) {
    ds::lr_curve c;
    for (double l : losses) c.points.push_back({std::pow(10., double(c.points.size())), l, l});
    return c;
  };
  CHECK(curve({4, 1, 40}).steepest() == 1);
  CHECK(curve({4, 3.9, 1, 40}).steepest() == 10);
}

TEST_CASE("a curve that never falls suggests nothing, and settings out of range are refused") {
  bowl<float> x;
  ds::optimizer opt{x.params, ds::sgd{}};
  int calls = 0;
  auto const rising =
      ds::find_learning_rate(opt, x.params, {.steps = 5, .diverged = 100}, [&] { return double(++calls); });
  CHECK(message<std::runtime_error>([&] { rising.steepest(); }) ==
        "lr_curve: the loss never falls over 5 rates; start with a lower rate, "
        "or check the sign of the gradient");
  CHECK(message<std::runtime_error>([] { ds::lr_curve{}.minimum(); }) == "lr_curve: there are no points");
  auto const refused = [&](ds::lr_sweep s) {
    return message<std::invalid_argument>([&] { ds::find_learning_rate(opt, x.params, s, [] { return 1.0; }); });
  };
  float w = 1, g = 1;
  ds::parameters<float> floats;
  floats.add("w", &w, &g, 1);
  ds::optimizer in_float{floats, ds::sgd{}};
  CHECK(message<std::invalid_argument>([&] {
          ds::find_learning_rate(in_float, floats, {.highest = 1e40}, [] { return 1.0; });
        }) == "lr_sweep: highest must be in the range of float, the type of the arithmetic, is 1e+40");
  CHECK(refused({.lowest = 1e-300, .highest = 1e300}) ==
        "lr_sweep: highest must be such that highest / lowest is finite, is 1e+300");
  CHECK(refused({.lowest = 0}) == "lr_sweep: lowest must be above 0, is 0");
  CHECK(refused({.lowest = 1, .highest = 1}) == "lr_sweep: highest must be above lowest and finite, is 1");
  CHECK(refused({.steps = 2}) == "lr_sweep: steps must be at least 3, is 2");
  CHECK(refused({.smoothing = 1}) == "lr_sweep: smoothing must be in [0, 1), is 1");
  CHECK(refused({.diverged = 1}) == "lr_sweep: diverged must be above 1, is 1");
}
