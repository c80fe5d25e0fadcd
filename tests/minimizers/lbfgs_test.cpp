// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/minimizers/lbfgs.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// L-BFGS against torch.optim.LBFGS (tests/reference/values_lbfgs.txt) and on problems with a known minimum.

namespace ds = descent;

namespace {

template <class Value = double> struct problem {
  std::vector<Value> x, y, gx, gy;
  int evaluations = 0;

  problem(std::vector<Value> a, std::vector<Value> b) : x(a), y(b), gx(a.size()), gy(b.size()) {}
  ds::parameters<Value> list() {
    ds::parameters<Value> all;
    all.add("x", x.data(), gx.data(), x.size());
    all.add("y", y.data(), gy.data(), y.size());
    return all;
  }
  std::size_t size() const { return x.size() + y.size(); }
  double at(std::size_t i) const { return ds::widen<double>(i < x.size() ? x[i] : y[i - x.size()]); }
  void set_gradient(std::size_t i, double g) { (i < x.size() ? gx[i] : gy[i - x.size()]) = ds::narrow<Value>(g); }
};

template <class Value = double> struct bowl : problem<Value> {
  static std::vector<Value> from(int begin, int end) {
    std::vector<Value> all;
    for (int i = begin; i < end; ++i) all.push_back(ds::narrow<Value>(0.1 * (i + 1)));
    return all;
  }
  bowl() : problem<Value>(from(0, 4), from(4, 10)) {}
  double operator()() {
    ++this->evaluations;
    double f = 0;
    std::vector<double> g(10);
    for (std::size_t i = 0; i < 10; ++i) {
      double const a = 1 + double(i), e = this->at(i) - std::sin(double(i));
      f += a * e * e / 2 + 0.05 * e * e * e * e;
      g[i] += a * e + 0.2 * e * e * e;
    }
    for (std::size_t i = 0; i + 1 < 10; ++i) {
      double const e = this->at(i + 1) - this->at(i);
      f += 0.5 * e * e;
      g[i + 1] += e, g[i] -= e;
    }
    for (std::size_t i = 0; i < 10; ++i) this->set_gradient(i, g[i]);
    return f;
  }
};

struct rosenbrock : problem<> {
  rosenbrock() : problem({-1.2}, {1}) {}
  double operator()() {
    ++evaluations;
    double const a = 1 - x[0], b = y[0] - x[0] * x[0];
    gx[0] = -2 * a - 400 * b * x[0];
    gy[0] = 200 * b;
    return a * a + 100 * b * b;
  }
};

/// A stiff quadratic and a chained Rosenbrock function.
struct chain : problem<> {
  static std::vector<double> from(int begin, int end) {
    std::vector<double> all;
    for (int i = begin; i < end; ++i) all.push_back(std::cos(i));
    return all;
  }
  chain() : problem(from(0, 8), from(8, 20)) {}
  double operator()() {
    ++evaluations;
    double f = 0;
    std::vector<double> g(20);
    for (std::size_t i = 0; i < 20; ++i) {
      double const a = std::pow(10.0, 4 * double(i) / 19), e = at(i) - std::sin(double(i));
      f += a * e * e / 2;
      g[i] += a * e;
    }
    for (std::size_t i = 0; i + 1 < 20; ++i) {
      double const x = at(i), e = at(i + 1) - x * x;
      f += 10 * e * e + (1 - x) * (1 - x);
      g[i + 1] += 20 * e;
      g[i] += -40 * e * x - 2 * (1 - x);
    }
    for (std::size_t i = 0; i < 20; ++i) set_gradient(i, g[i]);
    return f;
  }
};

constexpr int unlimited = 1000000;

/// `set` and `why` are those of a case that records why PyTorch stops.
template <class Problem> void follow_to_stop(ds::lbfgs const& set, ds::lbfgs_stop why, std::istream& in) {
  int iterations, evaluations;
  double spread;
  in >> iterations >> evaluations >> spread;
  Problem p;
  ds::lbfgs_optimizer opt{p.list(), set};
  auto const result = opt.minimize(p);
  CHECK(result.why == why);
  // PyTorch also counts the iteration in which it gives up
  CHECK(result.iterations == iterations - (why == ds::lbfgs_stop::slope));
  CHECK(result.evaluations == evaluations);
  for (std::size_t i = 0; i < p.size(); ++i) {
    double want;
    in >> want;
    CHECK(std::abs(p.at(i) - want) <= 1e-12 + 10 * spread);
  }
}

template <class Problem> void follow(ds::lbfgs set, std::istream& in) {
  int lines = 0;
  for (std::string line; std::getline(in, line) && !line.empty(); ++lines) {
    std::istringstream words(line);
    int iterations, evaluations;
    double spread;
    words >> iterations >> evaluations >> spread;
    INFO(iterations, " iterations");
    Problem p;
    set.max_iterations = iterations;
    set.max_evaluations = unlimited;
    set.tolerance_gradient = set.tolerance_change = 0;
    ds::lbfgs_optimizer opt{p.list(), set};
    auto const result = opt.minimize(p);
    CHECK(result.why == ds::lbfgs_stop::iterations);
    CHECK(result.iterations == iterations);
    // without a search, PyTorch does not evaluate the point where it stops
    CHECK(result.evaluations == evaluations + (set.search == ds::line_search::none));
    for (std::size_t i = 0; i < p.size(); ++i) {
      double want;
      words >> want;
      CHECK(std::abs(p.at(i) - want) <= 1e-12 + 10 * spread);
    }
  }
  CHECK(lines == 7);
}

}  // namespace

TEST_CASE("lbfgs follows torch.optim.LBFGS, with and without a search") {
  std::ifstream in(test::tests_dir() + "/reference/values_lbfgs.txt");
  REQUIRE(in);
  int cases = 0, stops = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("case")) continue;
    INFO(line);
    ++cases;
    auto const option = [&](std::string const& key) {
      auto const begin = line.find(key + "=") + key.size() + 1;
      return line.substr(begin, line.find(' ', begin) - begin);
    };
    ds::lbfgs set{.lr = std::stod(option("lr")), .history = std::stoi(option("history")),
                        .search = option("search") == "none" ? ds::line_search::none : ds::line_search::strong_wolfe};
    auto const dispatch = [&](auto const& follow_by) {
      if (line.starts_with("case bowl")) follow_by(bowl<>{});
      else if (line.starts_with("case chain")) follow_by(chain{});
      else follow_by(rosenbrock{});
    };
    if (line.find("stop=") == std::string::npos) {
      dispatch([&]<class Problem>(Problem const&) { follow<Problem>(set, in); });
      continue;
    }
    auto const given = [&](std::string const& key, double otherwise) {
      return line.find(key + "=") == std::string::npos ? otherwise : std::stod(option(key));
    };
    set.max_iterations = 200;
    set.max_evaluations = int(given("max_eval", unlimited));
    set.tolerance_gradient = given("tolerance_grad", 0);
    set.tolerance_change = given("tolerance_change", 0);
    std::string const stop = option("stop");
    ++stops;
    auto const why = stop == "gradient" ? ds::lbfgs_stop::gradient
                     : stop == "change" ? ds::lbfgs_stop::change
                     : stop == "slope"  ? ds::lbfgs_stop::slope
                                        : ds::lbfgs_stop::evaluations;
    dispatch([&]<class Problem>(Problem const&) { follow_to_stop<Problem>(set, why, in); });
  }
  CHECK(cases == 20);
  CHECK(stops == 10);
}

TEST_CASE("lbfgs finds the minimum with either search, and says why it stopped") {
  for (auto search : {ds::line_search::backtracking, ds::line_search::strong_wolfe}) {
    rosenbrock p;
    ds::lbfgs_optimizer opt{
        p.list(), ds::lbfgs{.max_iterations = 200, .max_evaluations = 1000, .tolerance_change = 0, .search = search}};
    auto const result = opt.minimize(p);
    CHECK(result.why == ds::lbfgs_stop::gradient);
    CHECK(result.reason() == "the gradient is smaller than tolerance_gradient");
    CHECK(result.gradient_max <= 1e-7);
    CHECK(result.evaluations == p.evaluations);
    CHECK(std::abs(p.x[0] - 1) < 1e-6);
    CHECK(std::abs(p.y[0] - 1) < 1e-6);
  }
}

TEST_CASE("lbfgs: a search never ends higher than it began") {
  for (auto search : {ds::line_search::backtracking, ds::line_search::strong_wolfe}) {
    rosenbrock p;
    double last = std::numeric_limits<double>::infinity();
    ds::lbfgs const set{.lr = 5, .max_iterations = 60, .max_evaluations = unlimited, .search = search};
    ds::lbfgs_optimizer opt{p.list(), set};
    auto const result = opt.minimize(p, [&](ds::lbfgs_result const& r) {
      CHECK(r.loss <= last);
      last = r.loss;
      return true;
    });
    CHECK(result.iterations > 5);
    CHECK(p() == last);  // values and gradients are those of the loss it reports
  }
}

TEST_CASE("lbfgs: a search that runs out of evaluations settles for the lowest point, its values and its gradient") {
  int all_steps = 0;
  for (int most : {1, 2, 3, 4}) {
    rosenbrock p;
    int steps = 0;
    ds::lbfgs const set{.lr = 5, .max_iterations = 40, .max_evaluations = unlimited, .max_search = most};
    ds::lbfgs_optimizer opt{p.list(), set};
    opt.minimize(p, [&](ds::lbfgs_result const& r) {
      rosenbrock here;
      here.x = p.x, here.y = p.y;
      CHECK(here() == r.loss);
      CHECK(std::max(std::abs(here.gx[0]), std::abs(here.gy[0])) == r.gradient_max);
      return ++steps > 0;
    });
    all_steps += steps;
  }
  CHECK(all_steps >= 10);
}

TEST_CASE("lbfgs in float, half and bfloat16: the parameters are rounded, the algorithm is not") {
  auto const works = []<class Value>(Value, double close) {
    bowl<Value> p;
    bowl<> exact;
    ds::lbfgs_optimizer opt{p.list(), ds::lbfgs{.max_iterations = 50, .max_evaluations = 500}};
    ds::lbfgs_optimizer best{exact.list(), ds::lbfgs{.max_iterations = 50, .max_evaluations = 500}};
    opt.minimize(p);
    best.minimize(exact);
    for (std::size_t i = 0; i < 10; ++i) CHECK(std::abs(p.at(i) - exact.at(i)) <= close);
  };
  works(1.f, 1e-5);
  works(ds::half{}, 5e-3);
  works(ds::bfloat16{}, 5e-2);
}

TEST_CASE("lbfgs: the same bits for one thread and many") {
  auto const run = [](auto backend) {
    std::vector<float> x(100000), g(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(float(i));
    ds::parameters<float> list;
    list.add("x", x.data(), g.data(), x.size());
    ds::lbfgs_optimizer opt{list, ds::lbfgs{.max_iterations = 6}, backend};
    opt.minimize([&] {
      double f = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        float const a = 1 + float(i % 7);
        g[i] = a * x[i] + x[i] * x[i] * x[i];
        f += a * x[i] * x[i] / 2 + x[i] * x[i] * x[i] * x[i] / 4;
      }
      return f;
    });
    return x;
  };
  CHECK(run(ds::host<ds::cpp>{}) == run(ds::host<>{}));
}

TEST_CASE("lbfgs continues from call to call as in one call") {
  bowl<> once, twice;
  ds::lbfgs set{.max_iterations = 8, .max_evaluations = unlimited, .tolerance_gradient = 0, .tolerance_change = 0};
  ds::lbfgs_optimizer a{once.list(), set};
  a.minimize(once);
  set.max_iterations = 4;
  ds::lbfgs_optimizer b{twice.list(), set};
  b.minimize(twice);
  b.minimize(twice);
  CHECK(once.x == twice.x);
  CHECK(once.y == twice.y);
}

TEST_CASE("lbfgs: an optimizer that is moved to itself still works") {
  bowl<> moved, still;
  ds::lbfgs const set{.max_iterations = 3, .tolerance_gradient = 0, .tolerance_change = 0};
  ds::lbfgs_optimizer a{moved.list(), set}, b{still.list(), set};
  for (int n = 0; n < 2; ++n) {
    auto& same = a;
    a = std::move(same);
    a.minimize(moved), b.minimize(still);
  }
  CHECK(moved.x == still.x);
  CHECK(moved.y == still.y);
}

TEST_CASE("lbfgs stops for every reason there is") {
  auto const why = [](ds::lbfgs set, auto&& p) {
    ds::lbfgs_optimizer opt{p.list(), set};
    return opt.minimize(p).why;
  };
  CHECK(why({.max_iterations = 2}, rosenbrock{}) == ds::lbfgs_stop::iterations);
  CHECK(why({.max_iterations = 99, .max_evaluations = 3}, rosenbrock{}) == ds::lbfgs_stop::evaluations);
  ds::lbfgs const coarse{.max_iterations = 99, .max_evaluations = 999, .tolerance_gradient = 1e6};
  CHECK(why(coarse, rosenbrock{}) == ds::lbfgs_stop::gradient);
  ds::lbfgs const still{.max_iterations = 99, .max_evaluations = 999, .tolerance_change = 1e-2};
  CHECK(why(still, bowl<>{}) == ds::lbfgs_stop::change);
  CHECK(why({.tolerance_change = 1e9}, bowl<>{}) == ds::lbfgs_stop::slope);
  rosenbrock p;
  ds::lbfgs_optimizer opt{p.list(), ds::lbfgs{}};
  CHECK(opt.minimize(p, [](ds::lbfgs_result const& r) { return r.iterations < 3; }).why == ds::lbfgs_stop::callback);
  auto const before = p.x;
  auto const nowhere = opt.minimize([&] { return std::numeric_limits<double>::quiet_NaN(); });
  CHECK(nowhere.why == ds::lbfgs_stop::not_finite);
  CHECK(p.x == before);
}

TEST_CASE("lbfgs: if evaluate throws, the next call continues from the values of the iteration's start") {
  struct stop {};
  ds::lbfgs const set{.max_iterations = 6, .max_evaluations = 99, .tolerance_gradient = 0, .tolerance_change = 0};
  rosenbrock whole;
  auto const values = [](auto const& p) { return std::pair(p.x[0], p.y[0]); };
  std::vector after{values(whole)};  // the iterations
  ds::lbfgs_optimizer once{whole.list(), set};
  once.minimize(whole, [&](auto const&) { return after.push_back(values(whole)), true; });
  int const calls = whole.evaluations;
  for (int last = 1; last <= calls; ++last) {
    INFO("evaluation ", last);
    rosenbrock p;
    ds::lbfgs_optimizer opt{p.list(), set};
    std::size_t done = 0;
    auto const count = [&](auto const&) { return ++done < 6; };
    auto const throwing = [&] {
      double const loss = p();
      if (p.evaluations == last) p.x[0] = 77, throw stop{};
      return loss;
    };
    CHECK_THROWS_AS(opt.minimize(throwing, count), stop);
    CHECK(values(p) == after[done]);
    opt.minimize(p, count);
    CHECK(values(p) == values(whole));
  }
}

TEST_CASE("lbfgs: a search backs away from where the loss is not finite") {
  std::vector<double> x{4}, g(1);
  ds::parameters<double> list;
  list.add("x", x.data(), g.data(), 1);
  for (auto search : {ds::line_search::backtracking, ds::line_search::strong_wolfe}) {
    x[0] = 4;
    ds::lbfgs const set{.lr = 100, .max_iterations = 100, .max_evaluations = 2000, .search = search};
    ds::lbfgs_optimizer opt{list, set};
    auto const result = opt.minimize([&] {  // x - log x, with its minimum at 1 and not defined below 0
      g[0] = 1 - 1 / x[0];
      return x[0] - std::log(x[0]);
    });
    CHECK(result.loss == doctest::Approx(1));
    CHECK(x[0] == doctest::Approx(1).epsilon(1e-4));
  }
}

TEST_CASE("lbfgs: settings out of range are refused") {
  bowl<> p;
  CHECK_THROWS_WITH_AS(ds::lbfgs_optimizer(p.list(), ds::lbfgs{.lr = 0}), "lbfgs: lr must be finite and above 0, is 0",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(ds::lbfgs_optimizer(p.list(), ds::lbfgs{.history = 0}),
                       "lbfgs: history must be at least 1, is 0", std::invalid_argument);
  CHECK_THROWS_AS(ds::lbfgs_optimizer(p.list(), ds::lbfgs{.decrease = 0.9, .curvature = 0.5}), std::invalid_argument);
  auto list = p.list();
  double other = 0;
  list.add("z", &other, p.gy.data(), 1);
  CHECK_THROWS_WITH_AS(ds::lbfgs_optimizer{list}, "the gradient of 'y' overlaps the gradient of 'z' in memory",
                       std::invalid_argument);
}

TEST_CASE("lbfgs as the page on optimizers shows it") {
  // snippet: lbfgs
  std::vector<double> x{-1.2, 1}, g(2);
  descent::parameters<double> params;
  params.add("x", x.data(), g.data(), x.size());

  descent::lbfgs_optimizer opt{params, descent::lbfgs{.max_iterations = 100, .max_evaluations = 200}};
  auto const result = opt.minimize([&] {
    double const a = 1 - x[0], b = x[1] - x[0] * x[0];
    g = {-2 * a - 400 * b * x[0], 200 * b};
    return a * a + 100 * b * b;
  });
  // result.reason(): "the direction does not descend by more than tolerance_change"
  // end
  CHECK(result.loss < 1e-12);
  CHECK(result.reason() == "the direction does not descend by more than tolerance_change");
}

TEST_CASE("lbfgs: no parameters, an empty tensor and one element") {
  ds::parameters<float> nothing;
  ds::lbfgs_optimizer none{nothing};
  CHECK(none.minimize([] { return 1.0; }).why == ds::lbfgs_stop::gradient);
  float x[2] = {3, 3}, g[2] = {};
  ds::parameters<float> one;
  one.add("empty", static_cast<float*>(nullptr), static_cast<float*>(nullptr), 0);
  one.add("x", x + 1, g + 1, 1);
  ds::lbfgs_optimizer opt{one};
  opt.minimize([&] {
    g[1] = 2 * x[1];
    return double(x[1] * x[1]);
  });
  CHECK(std::abs(x[1]) < 1e-4);
  CHECK(x[0] == 3);
}
