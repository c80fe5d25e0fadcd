// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/parameters.hpp>

#include <doctest/doctest.h>

#include "all_rules.hpp"
#include "optimizer_of.hpp"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

/// Problems with a known minimum, and whether a rule finds it within stated steps, with one of ten rates a factor of 3
/// apart, constant or falling linearly to zero.
namespace test {

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
  static double residual(int k, double x, double y) {
    return std::array{1.5, 2.25, 2.625}[std::size_t(k)] - x + x * std::pow(y, k + 1);
  }
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

/// Logistic regression of 40 points with three features and an L2 term; Newton's method below finds its minimum.
struct logistic {
  static constexpr char const* name = "logistic regression";
  static constexpr std::size_t size = 3;
  static constexpr int steps = 2000;
  static constexpr double close = 1e-3;
  static constexpr double penalty = 0.01;
  static double start(std::size_t i) { return 0.5 - 0.5 * double(i); }
  static std::array<double, 3> point(int n) { return {1, std::sin(1.7 * n) * 2, std::cos(2.3 * n * n)}; }
  static double label(int n) {
    return std::sin(1.7 * n) + 0.5 * std::cos(2.3 * n * n) + 0.6 * std::sin(5.1 * n) > 0 ? 1 : -1;
  }
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
      for (int k = 0; k < 3; ++k)  // Gauss-Jordan
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

/// A problem at run time, so that each rule is compiled once for each type and not once for each problem.
struct function {
  char const* name;
  std::size_t size;
  int steps;
  double close;  // the value that counts as the minimum, which is 0
  double (*start)(std::size_t);
  double (*value)(std::vector<double> const&);
  std::vector<double> (*gradient)(std::vector<double> const&);
};
template <class P>
constexpr function function_of{P::name, P::size, P::steps, P::close, P::start, P::value, P::gradient};

/// The smallest value along the path.
template <class Value, class Rule, class... Ps>
double least_on_path(function const& f, Rule const& rule, bool falls, Ps... policies) {
  std::vector<Value> x, g(f.size);
  for (std::size_t i = 0; i < f.size; ++i) x.push_back(descent::narrow<Value>(f.start(i)));
  descent::parameters<Value> list;
  list.add("x", x.data(), g.data(), f.size);
  auto opt = optimizer_of(list, rule, policies...);
  std::vector<double> p(f.size);
  double best = HUGE_VAL;
  for (int t = 0; t < f.steps; ++t) {
    for (std::size_t i = 0; i < f.size; ++i) p[i] = descent::widen<double>(x[i]);
    double const now = f.value(p);
    best = std::fmin(best, now);
    if (best <= f.close || !std::isfinite(now)) break;
    current_loss = float(now);
    auto const gradient = f.gradient(p);
    for (std::size_t i = 0; i < f.size; ++i) g[i] = descent::narrow<Value>(gradient[i]);
    if constexpr (requires { rule.lr; })
      if (falls) opt.group(0).lr = rule.lr * (1 - double(t) / f.steps);
    opt.step();
    if (!opt.report().applied) break;
  }
  return best;
}

template <class Value, class Rule, class... Ps> bool converges(function const& f, Rule rule, Ps... policies) {
  double best = HUGE_VAL;
  for (bool falls : {true, false})
    for (double lr : {0.3, 0.003, 1., 0.03, 0.01, 0.001, 0.1, 3., 10., 0.0003}) {  // the most successful first
      if constexpr (requires { rule.lr; }) rule.lr = lr;
      best = std::fmin(best, least_on_path<Value>(f, rule, falls, policies...));
      if (best <= f.close) return true;
    }
  MESSAGE("the best of all rates comes to ", best);
  return false;
}

/// Calls check(rule) for the first setting of every rule, without decay, which moves the minimum.
template <class Check> void each_convergence(Check const& check) {
  each_rule_once([&]<class Rule>() {
    bool first = true;
    each_setting<Rule>([&](row<Rule> const& row) {
      if (!std::exchange(first, false)) return;
      INFO(row.name);
      check(with_same_minimum(row.rule));
    });
  });
}

}  // namespace test
