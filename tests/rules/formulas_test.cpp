// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

// Every rule against its formula, written a second time as a plain loop over a few elements. It compiles quickly, so
// that a change of a rule is noticed within seconds. rules/reference_*_test.cpp have other libraries' numbers.
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/laprop.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>

#include "../support/naive.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ds = descent;
using numbers = std::vector<double>;

namespace {

numbers const start = {0.5, -1, 2, 0, -0.25, 3};
numbers gradient(int t) {
  numbers g;
  for (std::size_t i = 0; i < start.size(); ++i) g.push_back(std::sin(double(i * 5) + 2 * t));
  g[4] = 0;
  return g;
}

double norm(numbers const& x) {
  double sum = 0;
  for (double one : x) sum += one * one;
  return std::sqrt(sum);
}

/// Eight steps of one tensor; formula(t, p, g) makes the same step in place. Returns whether they agree.
template <class Rule, class Formula> bool follows(Rule const& rule, Formula formula) {
  numbers p = start, want = start;
  naive::states<Rule, double> s(p.size());
  if constexpr (ds::has_start<Rule>)
    for (std::size_t i = 0; i < p.size(); ++i) s[i] = rule.start(p[i]);
  [[maybe_unused]] auto memory = [] {
    if constexpr (ds::has_memory<Rule>) return typename Rule::memory{};
    else return 0;
  }();
  for (int t = 1; t <= 8; ++t) {
    numbers const g = gradient(t);
    auto k = rule.at(t);
    if constexpr (ds::has_sums<Rule>) {
      numbers sum(ds::detail::members<Rule::template sums>);
      for (std::size_t i = 0; i < p.size(); ++i) {
        typename Rule::template sums<double> one;
        if constexpr (ds::has_sums_of_state<Rule>) one = Rule::sum(p[i], g[i], s[i], k);
        else one = Rule::sum(p[i], g[i], k);
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += reinterpret_cast<double const*>(&one)[c];
      }
      auto const& total = *reinterpret_cast<typename Rule::template sums<double> const*>(sum.data());
      if constexpr (ds::has_memory<Rule>) k = rule.at(t, total, memory);
      else k = rule.at(t, total);
    }
    naive::step<Rule, double>(k, p, g, s);
    formula(t, want, g);
    for (std::size_t i = 0; i < p.size(); ++i)
      if (!(std::abs(p[i] - want[i]) <= 1e-13)) return false;
  }
  return true;
}

/// Both moments of Adam, unbiased, and their quotient.
struct moments {
  double beta1, beta2, eps;
  bool eps_hat = false;
  numbers m = numbers(start.size()), v = numbers(start.size());
  double direction(int t, std::size_t i, double g) {
    m[i] += (1 - beta1) * (g - m[i]);
    v[i] += (1 - beta2) * (g * g - v[i]);
    double const m_ = m[i] / (1 - std::pow(beta1, t)), root = std::sqrt(1 - std::pow(beta2, t));
    return eps_hat ? m_ * root / (std::sqrt(v[i]) + eps) : m_ / (std::sqrt(v[i]) / root + eps);
  }
};

}  // namespace

TEST_CASE("sgd: momentum, dampening after the first step, Nesterov and decay") {
  for (ds::sgd r : {ds::sgd{.lr = 0.1}, ds::sgd{.lr = 0.1, .dampening = 0.5, .weight_decay = 0.1},
                    ds::sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.1},
                    ds::sgd{.lr = 0.1, .momentum = 0.8, .nesterov = true},
                    ds::sgd{.lr = 0.2, .momentum = 0.5, .weight_decay = 0.3, .nesterov = true}}) {
    numbers b(start.size());
    CHECK(follows(r, [&](int t, numbers& p, numbers const& g) {
      for (std::size_t i = 0; i < p.size(); ++i) {
        double const d = g[i] + r.weight_decay * p[i];
        b[i] = t == 1 || r.momentum == 0 ? d : r.momentum * b[i] + (1 - r.dampening) * d;
        p[i] -= r.lr * (r.nesterov ? d + r.momentum * b[i] : b[i]);
      }
    }));
  }
}

TEST_CASE("adam: decay inside the gradient, eps beside the corrected root or the raw one; adamw: decay beside it") {
  for (bool raw : {false, true}) {
    moments a{0.8, 0.95, 1e-2, raw};
    ds::adam const r{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-2, .weight_decay = 0.2, .eps_hat = raw};
    CHECK(follows(r, [&](int t, numbers& p, numbers const& g) {
      for (std::size_t i = 0; i < p.size(); ++i) p[i] -= 0.1 * a.direction(t, i, g[i] + 0.2 * p[i]);
    }));
  }
  moments w{0.8, 0.95, 1e-2};
  ds::adamw const q{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-2, .weight_decay = 0.2};
  CHECK(follows(q, [&](int t, numbers& p, numbers const& g) {
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = p[i] * (1 - 0.1 * 0.2) - 0.1 * w.direction(t, i, g[i]);
  }));
}

TEST_CASE("laprop: each gradient is divided by the unbiased root, then averaged; decay beside it") {
  for (ds::laprop r :
       {ds::laprop{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-2, .weight_decay = 0.2}, ds::laprop{.lr = 0.1}}) {
    numbers m(start.size()), v(start.size());
    CHECK(follows(r, [&](int t, numbers& p, numbers const& g) {
      for (std::size_t i = 0; i < p.size(); ++i) {
        v[i] += (1 - r.beta2) * (g[i] * g[i] - v[i]);
        m[i] += (1 - r.beta1) * (g[i] / (std::sqrt(v[i] / (1 - std::pow(r.beta2, t))) + r.eps) - m[i]);
        p[i] = p[i] * (1 - r.lr * r.weight_decay) - r.lr * m[i] / (1 - std::pow(r.beta1, t));
      }
    }));
  }
}

TEST_CASE("lion: the sign of one average, then the other average") {
  numbers m(start.size());
  ds::lion const r{.lr = 0.1, .beta1 = 0.75, .beta2 = 0.5, .weight_decay = 0.25};
  CHECK(follows(r, [&](int, numbers& p, numbers const& g) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      double const c = 0.75 * m[i] + 0.25 * g[i];
      p[i] -= 0.1 * ((c > 0) - (c < 0) + 0.25 * p[i]);
      m[i] = (m[i] + g[i]) / 2;
    }
  }));
}

TEST_CASE("rmsprop: plain, centered, with momentum and decay") {
  for (ds::rmsprop r : {ds::rmsprop{.lr = 0.1, .alpha = 0.75, .eps = 1e-2},
                        ds::rmsprop{.lr = 0.1, .alpha = 0.9, .eps = 1e-2, .weight_decay = 0.1, .momentum = 0.5},
                        ds::rmsprop{.lr = 0.1, .alpha = 0.75, .eps = 1e-2, .momentum = 0.5, .centered = true}}) {
    numbers v(start.size()), mean(start.size()), b(start.size());
    CHECK(follows(r, [&](int, numbers& p, numbers const& g) {
      for (std::size_t i = 0; i < p.size(); ++i) {
        double const d = g[i] + r.weight_decay * p[i];
        v[i] += (1 - r.alpha) * (d * d - v[i]);
        mean[i] += (1 - r.alpha) * (d - mean[i]);
        double const variance = r.centered ? std::max(0.0, v[i] - mean[i] * mean[i]) : v[i];
        b[i] = r.momentum * b[i] + d / (std::sqrt(variance) + r.eps);
        p[i] -= r.lr * b[i];
      }
    }));
  }
}

TEST_CASE("lamb: Adam's direction with decay, as long as the tensor itself") {
  moments a{0.8, 0.95, 1e-2};
  ds::lamb const r{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-2, .weight_decay = 0.2};
  CHECK(follows(r, [&](int t, numbers& p, numbers const& g) {
    numbers u;
    for (std::size_t i = 0; i < p.size(); ++i) u.push_back(a.direction(t, i, g[i]) + 0.2 * p[i]);
    double const ratio = norm(p) / norm(u);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] -= 0.1 * ratio * u[i];
  }));
  CHECK(ds::lamb{.lr = 0.5}.at(1, {0, 4}).rate == 0.5);  // the ratio is 1 if a norm is 0
  CHECK(ds::lamb{.lr = 0.5}.at(1, {4, 0}).rate == 0.5);
  CHECK(ds::lamb{.lr = 0.5}.at(1, {4, 16}).rate == 0.25);
}

TEST_CASE("lars: the paper's ratio, or optax's joint one; Nesterov; lr inside the buffer") {
  for (bool joint : {false, true})
    for (bool nesterov : {false, true}) {
      ds::lars const r{.lr = 0.5,
                       .momentum = 0.75,
                       .weight_decay = 0.1,
                       .trust = 0.25,
                       .eps = 0.125,
                       .nesterov = nesterov,
                       .joint_norm = joint};
      numbers b(start.size());
      CHECK(follows(r, [&](int, numbers& p, numbers const& g) {
        numbers u;
        for (std::size_t i = 0; i < p.size(); ++i) u.push_back(g[i] + 0.1 * p[i]);
        double const below = joint ? norm(u) : norm(g) + 0.1 * norm(p);
        double const rate = 0.5 * 0.25 * norm(p) / (below + 0.125);
        for (std::size_t i = 0; i < p.size(); ++i) {
          b[i] = 0.75 * b[i] + rate * u[i];
          p[i] -= nesterov ? 0.75 * b[i] + rate * u[i] : b[i];
        }
      }));
    }
  CHECK(ds::lars{.lr = 0.5}.at(1, {0, 4, 4}).rate == 0.5);  // the ratio is 1 if a norm is 0
  CHECK(ds::lars{.lr = 0.5}.at(1, {4, 0, 4}).rate == 0.5);
  CHECK(ds::lars{.lr = 0.5, .joint_norm = true}.at(1, {4, 4, 0}).rate == 0.5);
}

TEST_CASE("dog: the largest distance over the root of all squared gradients") {
  double radius = 0, squares = 0;
  ds::dog const r{.lr = 0.5, .reps = 0.125, .eps = 0.25, .weight_decay = 0.1};
  CHECK(follows(r, [&](int t, numbers& p, numbers const& g) {
    numbers d, u;
    for (std::size_t i = 0; i < p.size(); ++i) d.push_back(p[i] - start[i]), u.push_back(g[i] + 0.1 * p[i]);
    radius = t == 1 ? 0.125 * (1 + norm(p)) : std::max(radius, norm(d));
    squares += norm(u) * norm(u);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] -= 0.5 * radius / std::sqrt(squares + 0.25) * u[i];
  }));
}
