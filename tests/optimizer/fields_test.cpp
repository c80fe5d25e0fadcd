// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Schedules of any field, in any group, chosen at run time, and the plateau.
#include <descent/cost.hpp>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/clip.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/choose.hpp>
#include <descent/schedules/combine.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/schedules/table.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace ds = descent;
using test::message;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Three groups of one element each, with gradients of 1: sgd moves each element by its group's lr.
struct three {
  double value[3] = {0, 0, 0}, gradient[3] = {1, 1, 1};

  ds::parameters<double> parameters() {
    ds::parameters<double> p;
    for (int g = 0; g < 3; ++g) p.add("w" + std::to_string(g), value + g, gradient + g, 1, ds::group{g});
    return p;
  }
};

/// The rate of each group in each of n updates, as measured from the parameters.
template <class Optimizer> std::vector<double> rates(three& x, Optimizer& opt, int n) {
  std::vector<double> all;
  for (int t = 0; t < n; ++t) {
    for (double& v : x.value) v = 0;
    opt.step();
    for (double v : x.value) all.push_back(-v);
  }
  return all;
}
template <class... Ps> std::vector<double> rates_with(int n, Ps... ps) {
  three x;
  ds::optimizer opt{x.parameters(), ds::sgd{.lr = 2}, ps...};
  opt.group(1).lr = 4, opt.group(2).lr = 8;
  return rates(x, opt, n);
}
using list = std::vector<double>;

template <class... Ps> std::string refused(Ps... ps) {
  return message([&] {
    three x;
    ds::optimizer opt{x.parameters(), ds::sgd{}, ps...};
  });
}

struct checked {
  double value = 1;
  double operator()(std::int64_t) const { return value; }
  void check() const { ds::detail::require(value > 0, "checked", "value", "above 0", value); }
};

}  // namespace

TEST_CASE("a scaled field is each group's own value times the schedule") {
  ds::linear const half{1, 0, 2};
  CHECK(rates_with(3, ds::scale<&ds::sgd::lr>(half)) == list{2, 4, 8, 1, 2, 4, 0, 0, 0});
  CHECK(rates_with(3, ds::scale_learning_rate(half)) == list{2, 4, 8, 1, 2, 4, 0, 0, 0});
  CHECK(rates_with(2, ds::learning_rate(half)) == list{1, 1, 1, 0.5, 0.5, 0.5});
}

TEST_CASE("a change of group() goes through a scaled field and not through a replaced one") {
  three x, y;
  ds::optimizer scaled{x.parameters(), ds::sgd{.lr = 1}, ds::scale_learning_rate(ds::constant{0.5})};
  ds::optimizer replaced{y.parameters(), ds::sgd{.lr = 1}, ds::learning_rate(ds::constant{0.5})};
  for (auto change : {1., 16.}) {
    scaled.group(1).lr = replaced.group(1).lr = change;
    CHECK(rates(x, scaled, 1) == list{0.5, change / 2, 0.5});
    CHECK(rates(y, replaced, 1) == list{0.5, 0.5, 0.5});
  }
}

TEST_CASE("only(group) leaves the other groups alone") {
  CHECK(rates_with(2, ds::learning_rate(ds::linear{1, 0, 2}).only(ds::group{1})) == list{2, 1, 8, 2, 0.5, 8});
  CHECK(rates_with(1, ds::scale<&ds::sgd::lr>(ds::constant{3}).only(ds::group{2})) == list{2, 4, 24});
  CHECK(rates_with(1, ds::vary<&ds::sgd::lr>(ds::constant{3}).only(ds::group{0})) == list{3, 4, 8});
}

TEST_CASE("per_group has a schedule for each group, and a function of step and group will do") {
  CHECK(rates_with(2, ds::learning_rate(ds::per_group{ds::constant{1}, ds::linear{4, 0, 2}, ds::constant{1}})) ==
        list{1, 4, 1, 1, 2, 1});
  CHECK(rates_with(1, ds::scale_learning_rate(ds::per_group{ds::constant{1}, ds::constant{2}, ds::constant{3}})) ==
        list{2, 8, 24});
  auto const deeper = [](std::int64_t step, int group) { return ds::power(0.5, 2 - group) * double(step + 1); };
  CHECK(rates_with(2, ds::learning_rate(deeper)) == list{0.25, 0.5, 1, 0.5, 1, 2});
}

TEST_CASE("a schedule chosen at run time: std::variant and any_of") {
  using choice = std::variant<ds::constant, ds::linear, ds::cosine>;
  for (choice c : {choice{ds::constant{3}}, choice{ds::linear{4, 0, 4}}, choice{ds::cosine{.peak = 2, .steps = 4}}}) {
    ds::any_of<ds::constant, ds::linear, ds::cosine> const any = c;
    CHECK(any.index() == int(c.index()));
    CHECK(std::is_trivially_copyable_v<decltype(any)>);
    list expected;
    for (std::int64_t t = 0; t < 6; ++t) {
      double const value = std::visit([&](auto const& s) { return s(t); }, c);
      CHECK(any(t) == value);
      for (int g = 0; g < 3; ++g) expected.push_back(value);
    }
    CHECK(rates_with(6, ds::learning_rate(c)) == expected);
    CHECK(rates_with(6, ds::vary<&ds::sgd::lr>(any)) == expected);
  }
}

TEST_CASE("a table is its knots, straight lines or steps between them, and constant outside") {
  ds::table_schedule<4> const lines{{10, 1.0}, {20, 3.0}, {24, -1.0}};
  ds::table_schedule<4> const steps{{{10, 1.0}, {20, 3.0}, {24, -1.0}}, ds::between_knots::constant};
  struct {
    std::int64_t t;
    double line, step;
  } const rows[] = {{0, 1, 1}, {9, 1, 1}, {10, 1, 1}, {11, 1.2, 1}, {15, 2, 1}, {19, 2.8, 1},
                    {20, 3, 3}, {21, 2, 3}, {23, 0, 3}, {24, -1, -1}, {25, -1, -1}, {std::int64_t{1} << 40, -1, -1}};
  for (auto const& row : rows) {
    CAPTURE(row.t);
    CHECK(lines(row.t) == doctest::Approx(row.line).epsilon(1e-15));
    CHECK(steps(row.t) == row.step);
  }
  CHECK(ds::table_schedule<1>{{5, 0.5}}(0) == 0.5);
  CHECK(lines.knots() == 3);
}

TEST_CASE("a table refuses knots that make no curve") {
  using table = ds::table_schedule<2>;
  using knots = std::vector<table::knot>;
  CHECK(message([] { table{knots{}}; }) == "table_schedule: the number of knots must be 1 to 2, is 0");
  CHECK(message([] { table{{0, 1.}, {1, 1.}, {2, 1.}}; }) ==
        "table_schedule: the number of knots must be 1 to 2, is 3");
  CHECK(message([] { table{{4, 1.}, {4, 2.}}; }) ==
        "table_schedule: the step of knot 1 must be above the one before, is 4");
  CHECK(message([] { table{knots{{-1, 1.}}}; }) == "table_schedule: the step of knot 0 must be at least 0, is -1");
  CHECK(message([] { table{{0, 1.}, {1, no_number}}; }) ==
        "table_schedule: the value of knot 1 must be finite, is nan");
}

TEST_CASE("a schedule's check runs in the constructor, with the name of its field") {
  checked const bad{-2};
  CHECK(refused(ds::learning_rate(bad)) == "learning_rate: checked: value must be above 0, is -2");
  CHECK(refused(ds::scale_learning_rate(bad)) == "scale_learning_rate: checked: value must be above 0, is -2");
  CHECK(refused(ds::vary<&ds::sgd::momentum>(bad)) == "sgd::momentum: checked: value must be above 0, is -2");
  CHECK(refused(ds::scale<&ds::sgd::weight_decay>(ds::any_of<ds::constant, checked>(bad))) ==
        "sgd::weight_decay: checked: value must be above 0, is -2");
  CHECK(refused(ds::learning_rate(ds::per_group{checked{}, bad, checked{}})) ==
        "learning_rate: group 1: checked: value must be above 0, is -2");
  CHECK(refused(ds::learning_rate(ds::per_group{checked{}, checked{}})) ==
        "learning_rate: per_group: must have one schedule for each group, so 3, has 2");
  CHECK(refused(ds::learning_rate(checked{}).only(ds::group{3})) ==
        "learning_rate: only: the group must be 0 to 2, is 3");
  CHECK(refused(ds::learning_rate(checked{}), ds::on_plateau{{.factor = 1}}) ==
        "plateau: factor must be in (0, 1), is 1");
  CHECK(refused(ds::on_plateau{{.initial = 0.1}}) == "on_plateau: initial must be 1, because it is a factor, is 0.1");
  CHECK(refused(ds::learning_rate(checked{})) == "");
}

TEST_CASE("a schedule's value is checked by its rule: in the constructor and in set_step, which then changes nothing") {
  auto const made = [](auto... ps) {
    return message([&] {
      three x;
      ds::optimizer opt{x.parameters(), ds::adamw{}, ps...};
    });
  };
  CHECK(made(ds::vary<&ds::adamw::beta1>(ds::constant{1.5})) ==
        "schedules at update 1, group 0: adamw: beta1 must be in [0, 1), is 1.5");
  CHECK(made(ds::learning_rate(ds::constant{-1}).only(ds::group{2})) ==
        "schedules at update 1, group 2: adamw: lr must be finite and at least 0, is -1");
  CHECK(made(ds::scale<&ds::adamw::beta2>(ds::constant{2})) ==
        "schedules at update 1, group 0: adamw: beta2 must be in [0, 1), is 1.998");
  CHECK(made(ds::scale_learning_rate(ds::constant{0})) == "");

  three x;
  ds::optimizer opt{x.parameters(), ds::sgd{}, ds::learning_rate(ds::linear{1, -1, 4})};
  opt.step();
  CHECK(message([&] { opt.set_step(3); }) ==
        "schedules at update 4, group 0: sgd: lr must be finite and at least 0, is -0.5");
  CHECK(opt.report().step == 1);
  opt.set_step(2);
  CHECK(opt.report().step == 2);

  float w[4] = {}, g[4] = {};
  ds::parameters<float> p;
  p.add("w", w, g, ds::shape{2, 2});
  CHECK(message([&] {
          ds::optimizer of_matrices{p, ds::sgd{}, ds::matrices{ds::muon{}}, ds::vary<&ds::muon::lr>(ds::constant{-1})};
        }) == "schedules at update 1, group 0: muon: lr must be finite and at least 0, is -1");
}

TEST_CASE("schedules chosen at run time go inside others: warmup, join, scaled and a schedule for each group") {
  using choice = ds::any_of<ds::constant, ds::linear>;
  ds::table_schedule<4> const table{{0, 4.0}, {4, 8.0}};
  ds::warmup<choice> const rise{.steps = 2, .then = choice{ds::linear{4, 0, 4}}};
  CHECK(rates_with(5, ds::learning_rate(rise)) == list{2, 2, 2, 4, 4, 4, 4, 4, 4, 3, 3, 3, 2, 2, 2});
  ds::join const pieces{{1, 3}, ds::constant{1}, table, choice{ds::constant{7}}};
  CHECK(rates_with(4, ds::learning_rate(pieces)) == list{1, 1, 1, 4, 4, 4, 5, 5, 5, 7, 7, 7});
  CHECK(rates_with(2, ds::learning_rate(ds::scaled{0.5, table})) == list{2, 2, 2, 2.5, 2.5, 2.5});
  CHECK(rates_with(2, ds::learning_rate(ds::per_group{choice{ds::linear{2, 1, 1}}, ds::constant{3}, table})) ==
        list{2, 3, 4, 1, 3, 5});
  CHECK(refused(ds::learning_rate(ds::warmup<choice>{.steps = 2, .then = choice{ds::linear{1, 0, -1}}})) ==
        "learning_rate: linear: steps must be in [0, 2^62], is -1");
  using variant = std::variant<ds::constant, ds::linear>;
  variant const v = ds::linear{4, 0, 4};
  CHECK(rates_with(2, ds::learning_rate(ds::warmup<choice>{.steps = 1, .then = v})) == list{4, 4, 4, 4, 4, 4});
}

TEST_CASE("several fields at once, as one bundle") {
  three x, y;
  auto const cycle =
      ds::together(ds::learning_rate(ds::linear{1, 0, 8}), ds::vary<&ds::sgd::momentum>(ds::linear{0.5, 0.9, 8}));
  ds::optimizer one{x.parameters(), ds::sgd{}, cycle};
  ds::optimizer two{y.parameters(), ds::sgd{}, ds::learning_rate(ds::linear{1, 0, 8}),
                    ds::vary<&ds::sgd::momentum>(ds::linear{0.5, 0.9, 8})};
  auto const both = rates(x, one, 8);
  CHECK(both == rates(y, two, 8));
  CHECK(both != rates_with(8, ds::learning_rate(ds::linear{1, 0, 8})));
}

TEST_CASE("scaled fields of chains reach the part that has them") {
  auto const run = [](auto rule, auto policy) {
    three x;
    for (double& v : x.value) v = 1;
    ds::optimizer opt{x.parameters(), rule, policy};
    opt.step(), opt.step();
    return list{x.value[0], x.value[1], x.value[2]};
  };
  auto const decayed = [](double wd) { return ds::chain{ds::l2{wd}, ds::sgd{.lr = 0.5}}; };
  CHECK(run(decayed(4), ds::scale<&ds::l2::weight_decay>(ds::constant{0.25})) ==
        run(decayed(1), ds::scale_learning_rate(ds::constant{1})));
  CHECK(run(decayed(1), ds::scale_learning_rate(ds::constant{0.5})) ==
        run(decayed(1), ds::learning_rate(ds::constant{0.25})));
}

TEST_CASE("one relative schedule moves the rule and the rule of matrices, each from its own rate") {
  auto const run = [](auto set, auto... policies) {
    std::vector<float> w(6, 1), b(3, 1), gw{1, 2, -1, 0.5f, 3, 1}, gb{1, 1, 1};
    ds::parameters<float> p;
    p.add("w", w.data(), gw.data(), ds::shape{2, 3});
    p.add("b", b.data(), gb.data(), 3);
    ds::optimizer opt{p, ds::sgd{.lr = 0.5}, ds::matrices{ds::muon{.lr = 0.25}}, policies...};
    set(opt);
    opt.step();
    w.insert(w.end(), b.begin(), b.end());
    return w;
  };
  auto const leave = [](auto&) {};
  auto const halved = run([](auto& o) { o.group(0).lr = 0.25, o.matrix_rule().lr = 0.125; });
  CHECK(run(leave, ds::scale_learning_rate(ds::constant{0.5})) == halved);
  CHECK(run([](auto& o) { o.observe(1), o.observe(2); }, ds::on_plateau{{.factor = 0.5, .patience = 0}}) == halved);
  CHECK(run(leave, ds::scale<&ds::muon::lr>(ds::constant{0.5})) == run([](auto& o) { o.matrix_rule().lr = 0.125; }));
}

TEST_CASE("skipped steps do not move a scaled field, and set_step resumes it exactly") {
  three x, y;
  auto const rate = ds::scale_learning_rate(ds::cosine{.peak = 1, .steps = 9});
  ds::optimizer opt{x.parameters(), ds::sgd{.lr = 1}, rate, ds::skip_nonfinite{}};
  auto const first = rates(x, opt, 3);
  x.gradient[1] = no_number;
  opt.step();
  CHECK(!opt.report().applied);
  x.gradient[1] = 1;
  ds::optimizer resumed{y.parameters(), ds::sgd{.lr = 1}, rate, ds::skip_nonfinite{}};
  resumed.set_step(opt.report().step);
  CHECK(rates(x, opt, 6) == rates(y, resumed, 6));
}

TEST_CASE("state that a scaled or varied field could switch on is allocated") {
  auto const bytes = [](double momentum, auto policy) {
    three x;
    return ds::memory(x.parameters(), ds::sgd{.momentum = momentum}, policy).bytes > 0;
  };
  CHECK(bytes(0.9, ds::scale<&ds::sgd::momentum>(ds::constant{0})));
  CHECK(!bytes(0, ds::scale<&ds::sgd::momentum>(ds::constant{1})));
  CHECK(bytes(0, ds::vary<&ds::sgd::momentum>(ds::constant{0})));
}

TEST_CASE("on_plateau multiplies every rate after its schedule, by metrics by value and in memory") {
  three x;
  ds::optimizer opt{x.parameters(), ds::sgd{.lr = 2}, ds::scale_learning_rate(ds::linear{1, 0, 4}),
                    ds::on_plateau{{.factor = 0.5, .patience = 1}}};
  opt.group(1).lr = 4;
  CHECK(rates(x, opt, 1) == list{2, 4, 2});
  float const metric = 5;
  opt.observe(4.0), opt.observe(&metric), opt.observe(&metric);
  CHECK(opt.plateau().value == 0.5);
  CHECK(opt.plateau().best == 4);
  CHECK(rates(x, opt, 1) == list{0.75, 1.5, 0.75});
  CHECK(opt.report().learning_rate == 0.75);
  CHECK(message([&] { opt.observe(static_cast<float const*>(nullptr)); }) ==
        "observe: the metric is null, but there must be 1 element");
}

TEST_CASE("the state of a plateau is saved, restored and kept by gathered()") {
  three x, y;
  ds::on_plateau const policy{{.factor = 0.5, .patience = 1, .cooldown = 1}};
  ds::optimizer a{x.parameters(), ds::sgd{.lr = 1}, policy}, b{y.parameters(), ds::sgd{.lr = 1}, policy};
  for (double m : {1., 2., 2., 2., 2.}) a.observe(m);
  b.set_plateau(a.plateau());
  auto c = a.gathered(x.parameters());
  for (double m : {2., 2., 0.5, 1., 1.}) {
    a.observe(m), b.observe(m), c.observe(m);
    CHECK(a.plateau().value == b.plateau().value);
    CHECK(a.plateau().bad == b.plateau().bad);
    CHECK(a.plateau().value == c.plateau().value);
    CHECK(rates(x, a, 1) == rates(y, b, 1));
  }
  CHECK(a.plateau().value < 0.5);
  auto const put_back = [&](auto const& change) {
    auto s = a.plateau();
    change(s);
    return message([&] { b.set_plateau(s); });
  };
  CHECK(put_back([](auto& s) { s.best = no_number; }) == "set_plateau: the best metric must be a number, is nan");
  CHECK(put_back([](auto& s) { s.bad = -5; }) == "set_plateau: the count of bad metrics must be in [0, 2^62], is -5");
  CHECK(put_back([](auto& s) { s.cooldown = -1; }) == "set_plateau: the cooldown left must be in [0, 2^62], is -1");
  CHECK(put_back([](auto& s) { s.collected = -1; }) ==
        "set_plateau: the count of metrics in the mean must be in [0, 2^62], is -1");
  CHECK(put_back([](auto& s) { s.mean = no_number; }) == "set_plateau: the mean of no metric must be 0, is nan");
  CHECK(put_back([](auto&) {}) == "");
  auto const unused = ds::optimizer{y.parameters(), ds::sgd{}, policy}.plateau();
  CHECK(std::isinf(unused.best));  // and may be restored, too
  b.set_plateau(unused);
  CHECK(put_back([](auto& s) { s.value = 2; }) == "set_plateau: the value must be in [0, 1], is 2");
}

TEST_CASE("accumulate_by takes the number of micro-batches from a schedule of the updates") {
  three x;
  ds::optimizer opt{
      x.parameters(), ds::sgd{.lr = 1},
      ds::accumulate_by{ds::table_schedule<4>{{{0, 1.}, {1, 0.}, {2, 2.6}, {3, 2.}}, ds::between_knots::constant}}};
  std::vector<std::int64_t> updates;
  for (int call = 0; call < 9; ++call) opt.step(), updates.push_back(opt.report().step);
  CHECK(updates == std::vector<std::int64_t>{1, 2, 2, 2, 3, 3, 4, 4, 5});
  CHECK(x.value[0] == doctest::Approx(-(1 + 1 + 1 / 3. + 1 / 2. + 1 / 2.)));  // divided by the number of micro-batches
  opt.step();
  opt.flush();
  CHECK(opt.report().step == 6);
}
