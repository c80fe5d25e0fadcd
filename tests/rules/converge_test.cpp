// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/all_rules.hpp"

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

/// Every rule finds the minimum of problems whose minimum is known, within stated steps, with one of ten rates a factor of
/// 3 apart, held or falling linearly to zero.

using namespace test;
namespace ds = descent;

namespace {

/// sum a (x - c)^2 / 2 with a from 1 to 10.
struct quadratic {
  static constexpr char const* name = "quadratic";
  static constexpr std::size_t size = 6;
  static constexpr int steps = 1000;
  static constexpr double close = 2e-3;
  static double curvature(std::size_t i) { return 1 + 9 * double(i) / (size - 1); }
  static double best(std::size_t i) { return i % 2 ? -1 : 1.5; }
  static double start(std::size_t) { return 0.25; }
  static double value(std::vector<double> const& x) {
    double f = 0;
    for (std::size_t i = 0; i < size; ++i) f += curvature(i) * (x[i] - best(i)) * (x[i] - best(i)) / 2;
    return f;
  }
  static std::vector<double> gradient(std::vector<double> const& x) {
    std::vector<double> g(size);
    for (std::size_t i = 0; i < size; ++i) g[i] = curvature(i) * (x[i] - best(i));
    return g;
  }
};

/// (1 - x)^2 + 100 (y - x^2)^2 from (-1.2, 1) (Rosenbrock 1960).
struct rosenbrock {
  static constexpr char const* name = "Rosenbrock";
  static constexpr std::size_t size = 2;
  static constexpr int steps = 10000;
  static constexpr double close = 0.1;
  static double start(std::size_t i) { return i ? 1 : -1.2; }
  static double value(std::vector<double> const& x) {
    double const a = 1 - x[0], b = x[1] - x[0] * x[0];
    return a * a + 100 * b * b;
  }
  static std::vector<double> gradient(std::vector<double> const& x) {
    double const b = x[1] - x[0] * x[0];
    return {-2 * (1 - x[0]) - 400 * b * x[0], 200 * b};
  }
};

/// Beale's function from (1, 1); its minimum is 0 at (3, 0.5).
struct beale {
  static constexpr char const* name = "Beale";
  static constexpr std::size_t size = 2;
  static constexpr int steps = 5000;
  static constexpr double close = 0.02;
  static double start(std::size_t) { return 1; }
  static double residual(int k, double x, double y) { return std::array{1.5, 2.25, 2.625}[std::size_t(k)] - x + x * std::pow(y, k + 1); }
  static double value(std::vector<double> const& x) {
    double f = 0;
    for (int k = 0; k < 3; ++k) f += residual(k, x[0], x[1]) * residual(k, x[0], x[1]);
    return f;
  }
  static std::vector<double> gradient(std::vector<double> const& x) {
    std::vector<double> g(2);
    for (int k = 0; k < 3; ++k) {
      double const r = residual(k, x[0], x[1]);
      g[0] += 2 * r * (std::pow(x[1], k + 1) - 1);
      g[1] += 2 * r * x[0] * (k + 1) * std::pow(x[1], k);
    }
    return g;
  }
};

/// Logistic regression of 40 points with three features and an L2 term; its minimum by Newton's method is below.
struct logistic {
  static constexpr char const* name = "logistic regression";
  static constexpr std::size_t size = 3;
  static constexpr int steps = 2000;
  static constexpr double close = 1e-3;
  static constexpr double penalty = 0.01;
  static double start(std::size_t i) { return 0.5 - 0.5 * double(i); }
  static std::array<double, 3> point(int n) { return {1, std::sin(1.7 * n) * 2, std::cos(2.3 * n * n)}; }
  static double label(int n) { return std::sin(1.7 * n) + 0.5 * std::cos(2.3 * n * n) + 0.6 * std::sin(5.1 * n) > 0 ? 1 : -1; }
  static double margin(std::vector<double> const& x, int n) {
    auto const a = point(n);
    return label(n) * (a[0] * x[0] + a[1] * x[1] + a[2] * x[2]);
  }
  static double loss(std::vector<double> const& x) {
    double f = 0;
    for (int n = 0; n < 40; ++n) f += std::log1p(std::exp(-margin(x, n))) / 40;
    for (double one : x) f += penalty * one * one / 2;
    return f;
  }
  static std::vector<double> gradient(std::vector<double> const& x) {
    std::vector<double> g(3);
    for (int n = 0; n < 40; ++n)
      for (std::size_t i = 0; i < 3; ++i) g[i] -= label(n) * point(n)[i] / (1 + std::exp(margin(x, n))) / 40;
    for (std::size_t i = 0; i < 3; ++i) g[i] += penalty * x[i];
    return g;
  }
  static double least() {
    std::vector<double> x(3);
    for (int t = 0; t < 20; ++t) {
      auto const g = gradient(x);
      double h[3][4] = {};
      for (int n = 0; n < 40; ++n) {
        double const s = 1 / (1 + std::exp(-margin(x, n)));
        for (std::size_t i = 0; i < 3; ++i)
          for (std::size_t j = 0; j < 3; ++j) h[i][j] += s * (1 - s) * point(n)[i] * point(n)[j] / 40;
      }
      for (std::size_t i = 0; i < 3; ++i) h[i][i] += penalty, h[i][3] = g[i];
      for (int k = 0; k < 3; ++k)  // Gauss and Jordan
        for (int i = 0; i < 3; ++i)
          for (int j = 3; j >= k && i != k; --j) h[i][j] -= h[i][k] / h[k][k] * h[k][j];
      for (std::size_t i = 0; i < 3; ++i) x[i] -= h[i][3] / h[i][i];
    }
    return loss(x);
  }
  static double value(std::vector<double> const& x) {
    static double const f = least();
    return loss(x) - f;
  }
};

/// The smallest value on the way.
template <class Problem, class Value, class Rule, class... Ps>
double run(Rule const& rule, bool falls, Ps... policies) {
  std::vector<Value> x, g(Problem::size);
  for (std::size_t i = 0; i < Problem::size; ++i) x.push_back(ds::narrow<Value>(Problem::start(i)));
  ds::parameters<Value> list;
  list.add("x", x.data(), g.data(), Problem::size);
  ds::optimizer opt{list, rule, policies...};
  std::vector<double> p(Problem::size);
  double best = HUGE_VAL;
  for (int t = 0; t < Problem::steps; ++t) {
    for (std::size_t i = 0; i < Problem::size; ++i) p[i] = ds::widen<double>(x[i]);
    best = std::fmin(best, Problem::value(p));
    if (best <= Problem::close) break;
    auto const gradient = Problem::gradient(p);
    for (std::size_t i = 0; i < Problem::size; ++i) g[i] = ds::narrow<Value>(gradient[i]);
    if constexpr (requires { rule.lr; })
      if (falls) opt.group(0).lr = rule.lr * (1 - double(t) / Problem::steps);
    opt.step();
  }
  return best;
}

template <class Problem, class Value, class Rule, class... Ps> bool converges(Rule rule, Ps... policies) {
  double best = HUGE_VAL;
  for (double lr : {0.3, 0.1, 0.03, 1., 0.01, 3., 0.003, 10., 0.001, 0.0003}) {
    if constexpr (requires { rule.lr; }) rule.lr = lr;
    for (bool falls : {true, false}) {
      best = std::fmin(best, run<Problem, Value>(rule, falls, policies...));
      if (best <= Problem::close) return true;
    }
  }
  MESSAGE("the best of all rates comes to ", best);
  return false;
}

/// f(rule), with the first setting of every rule, but without decay, which moves the minimum.
template <class F> void each_first(F f) {
  each_rule_once([&]<class Rule>() {
    bool first = true;
    each_setting<Rule>([&](row<Rule> const& row) {
      if (!std::exchange(first, false)) return;
      INFO(row.name);
      f(with_same_minimum(row.rule));
    });
  });
}

template <class Problem> void all_converge() {
  each_first([](auto const& rule) { CHECK(converges<Problem, double>(rule)); });
}

}  // namespace

TEST_CASE("the gradients of the problems are those of their values") {
  auto const agrees = []<class Problem>(Problem) {
    INFO(Problem::name);
    std::vector<double> x;
    for (std::size_t i = 0; i < Problem::size; ++i) x.push_back(Problem::start(i));
    auto const g = Problem::gradient(x);
    for (std::size_t i = 0; i < Problem::size; ++i) {
      auto above = x, below = x;
      above[i] += 1e-5, below[i] -= 1e-5;
      CHECK(g[i] == doctest::Approx((Problem::value(above) - Problem::value(below)) / 2e-5).epsilon(1e-5));
    }
  };
  agrees(quadratic{}), agrees(rosenbrock{}), agrees(beale{}), agrees(logistic{});
}

TEST_CASE("every rule converges on a quadratic") { all_converge<quadratic>(); }
TEST_CASE("every rule converges on Rosenbrock's function") { all_converge<rosenbrock>(); }
TEST_CASE("every rule converges on Beale's function") { all_converge<beale>(); }
TEST_CASE("every rule converges in logistic regression") { all_converge<logistic>(); }
TEST_CASE("every rule converges in float, and in half and bfloat16 with a master") {
  each_first([](auto const& rule) {
    CHECK(converges<quadratic, float>(rule));
    CHECK(converges<quadratic, ds::half>(rule, ds::master<float>{}));
    CHECK(converges<quadratic, ds::bfloat16>(rule, ds::master<float>{}));
  });
}
