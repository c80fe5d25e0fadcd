// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Fields of groups, schedules chosen at run time, the plateau, growing batches and the finder, evaluated on the device.
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/choose.hpp>
#include <descent/schedules/cycles.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/table.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/training/large_batch.hpp>
#include <descent/training/lr_finder.hpp>

#include <limits>
#include <variant>

namespace {

namespace ds = descent;

std::vector<test::tensor> const model{{100, 0}, {33, 1}};

using choice = ds::any_of<ds::constant, ds::linear, ds::table_schedule<4>>;

/// A multiplier that depends on the group.
struct by_group {
  DESCENT_HD double operator()(std::int64_t step, int group) const { return group == 0 ? 1 : 0.5 / double(step + 1); }
};

template <class Twins> void overflow(Twins& both) {
  both.x.gradient_of(1, 5) = std::numeric_limits<float>::infinity();
  both.step();
  CHECK(!both.device.report().applied);
}

}  // namespace

TEST_CASE("scaled, grouped and chosen schedules give the host's bits, over a skipped step and after set_step") {
  for (choice c : {choice{ds::constant{0.5}}, choice{ds::linear{1, 0.25, 8}},
                   choice{ds::table_schedule<4>{{2, 1.0}, {4, 0.5}, {6, 2.0}}}}) {
    auto both = test::twins_of<float>(
        model, ds::adamw{.lr = 0.01}, ds::scale_learning_rate(by_group{}), ds::vary<&ds::adamw::weight_decay>(c),
        ds::vary<&ds::adamw::beta1>(ds::constant{0.5}).only(ds::group{1}), ds::skip_nonfinite{});
    both.steps(3);
    overflow(both);
    both.steps(3);
    both.expect_same();
    both.each([](auto& opt) { opt.set_step(2); });
    both.steps(2);
    both.expect_same();
  }
}

TEST_CASE("a std::variant and a schedule for each group reach the device") {
  std::variant<ds::constant, ds::linear> const v = ds::linear{0.1, 0.01, 6};
  auto both = test::twins_of<float>(model, ds::sgd{.momentum = 0.9},
                                    ds::learning_rate(ds::per_group{ds::constant{0.1}, ds::linear{0, 0.1, 5}}),
                                    ds::vary<&ds::sgd::momentum>(v));
  both.steps(6);
  both.expect_same();
}

TEST_CASE("one cycle of rate and momentum gives the host's bits, eager and in a captured graph") {
  ds::one_cycle const c{.peak = 0.05, .steps = 8};
  auto const run = [&](auto rule, auto cycle) {
    auto both = test::twins_of<float>(model, rule, cycle);
    auto runs = test::replayed_of<float>(model, test::one_step, rule, cycle);
    both.steps(9);
    both.expect_same();
    for (std::uint64_t t = 1; t <= 9; ++t) runs.step(t);
    runs.expect_same();
    CHECK(test::same_bits(both.x.device_value.get(both.s), runs.y.device_value.get(runs.s)));
  };
  run(ds::sgd{.momentum = 0.5}, ds::one_cycle_of<&ds::sgd::momentum>(c));
  run(ds::adamw{}, ds::one_cycle_of<&ds::adamw::beta1>(c));
}

TEST_CASE("a captured step follows chosen schedules, groups and a plateau whose metric lies on the device") {
  test::stream s;
  test::tensors<float> x{model, s}, y{model, s};
  auto const make = [&](auto& t) {
    return ds::optimizer{t.on_device(), ds::sgd{.lr = 0.1}, ds::scale_learning_rate(by_group{}),
                         ds::vary<&ds::sgd::weight_decay>(choice{ds::linear{0, 1, 4}}),
                         ds::on_plateau{{.factor = 0.5, .patience = 1}}, ds::cuda{s}};
  };
  auto eager = make(x), captured = make(y);
  test::device_vector<float> metric{{1.f}, s};
  test::graph const recorded(s, [&] { captured.observe(metric.data()), captured.step(); });
  for (int t = 0; t < 7; ++t) {
    float const m = t < 2 ? 3.f - float(t) : 2.f;
    metric.put({m}, s);
    eager.observe(double(m)), eager.step();
    recorded.launch(s);
  }
  test::expect_same(x.device_value.get(s), y.device_value.get(s), "value");
  CHECK(captured.plateau().value == 0.25);
  CHECK(captured.report().learning_rate == 0.1 * 0.25);
  CHECK(eager.plateau().bad == captured.plateau().bad);
}

TEST_CASE("an observed metric reaches the next sums of a rule, and set_plateau restores it") {
  auto both = test::twins_of<float>(model, ds::lars{.lr = 0.1}, ds::on_plateau{{.factor = 0.5, .patience = 0}});
  both.steps(2);
  auto const saved = both.device.plateau();
  both.each([](auto& opt) { opt.observe(1), opt.observe(2); });
  both.steps(2);
  both.expect_same();
  CHECK(both.device.plateau().value == 0.5);
  both.each([&](auto& opt) { opt.set_plateau(saved); });
  both.steps(1);
  both.expect_same();
  CHECK(both.device.plateau().value == 1);
}

TEST_CASE("a growing batch updates after the same calls as on the host, also when replayed") {
  auto const growth = ds::grow_batch(
      ds::batch_growth<ds::step>{.rate = {.initial = 0.5, .factor = 0.5, .every = 2}, .batch = 1, .largest = 2});
  auto both = test::twins_of<float>(model, ds::sgd{}, growth);
  auto runs = test::replayed_of<float>(model, test::one_step, ds::sgd{}, growth);
  for (std::uint64_t t = 1; t <= 9; ++t) {
    both.x.new_gradients(t), both.step();
    both.expect_same();
    runs.step(t);
    runs.expect_same();
  }
  CHECK(both.device.report().step == 5);  // after 1, 2, 4, 6, 8 calls
  CHECK(test::same_bits(both.x.device_value.get(both.s), runs.y.device_value.get(runs.s)));
}

TEST_CASE("the finder's curve is the host's, and leaves values, gradients and the optimizer as they were") {
  auto both = test::twins_of<float>(model, ds::adamw{.lr = 0.01}, ds::ema{.decay = 0.9}, ds::clip_norm{1});
  auto& x = both.x;
  auto& s = both.s;
  both.steps(2);
  auto const values = x.device_value.get(s), gradients = x.device_gradient.get(s);
  ds::lr_sweep const sweep{.lowest = 1e-3, .highest = 10, .steps = 6, .smoothing = 0.5};
  /// The sum of squares, whose gradient is twice the value.
  auto const loss = [](std::vector<float> const& v, std::vector<float>& g) {
    double sum = 0;
    for (std::size_t i = 0; i < v.size(); ++i)
      if (v[i] != -77) sum += double(v[i]) * v[i], g[i] = 2 * v[i];
    return sum;
  };
  auto const on_host = ds::find_learning_rate(both.host, x.on_host(), sweep, [&] { return loss(x.value, x.gradient); });
  auto const on_device = ds::find_learning_rate(both.device, x.on_device(), sweep, [&] {
    auto g = x.device_gradient.get(s);
    double const l = loss(x.device_value.get(s), g);
    x.device_gradient.put(g, s);
    s.wait();
    return l;
  });
  REQUIRE(on_host.points.size() == on_device.points.size());
  for (std::size_t i = 0; i < on_host.points.size(); ++i) {
    double const h = on_host.points[i].loss, d = on_device.points[i].loss;
    if (test::contracted) CHECK(d == doctest::Approx(h).epsilon(0x1p-20));  // of values in float
    else test::expect_same(h, d, "loss");
    CHECK(on_host.points[i].rate == on_device.points[i].rate);
  }
  CHECK(on_device.points.back().loss != on_device.points.front().loss);
  CHECK(x.device_value.get(s) == values);
  CHECK(x.device_gradient.get(s) == gradients);
  CHECK(both.device.report().step == 2);
  both.steps(2);
  both.expect_same();
}
