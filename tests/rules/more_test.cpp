// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/rules/adabound.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/asgd.hpp>
#include <descent/rules/cocob.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/larc.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/rules/padam.hpp>
#include <descent/rules/qhadam.hpp>
#include <descent/rules/qhm.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/sophia.hpp>
#include <descent/rules/yellowfin.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>

#include "support/larger.hpp"
#include "support/problem.hpp"
#include "support/trial.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {

auto near(double x, double epsilon = 1e-14) { return doctest::Approx(x).epsilon(epsilon); }

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Values after steps of a rule with policies on the gradients of the problem.
template <class Rule, class... Ps> std::vector<std::vector<double>> run(Rule const& rule, int steps, Ps... policies) {
  problem<double> p({5, 1, 12});
  ds::optimizer opt{p.parameters(), rule, policies...};
  for (int t = 1; t <= steps; ++t) {
    p.set_gradients(t);
    opt.step();
  }
  return p.value;
}

double apart(std::vector<std::vector<double>> const& a, std::vector<std::vector<double>> const& b) {
  double most = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a[k].size(); ++i) most = test::larger(most, std::abs(a[k][i] - b[k][i]));
  return most;
}

double norm(std::vector<double> const& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

}  // namespace

TEST_CASE("qhm: nu = 0 is gradient descent, nu = 1 momentum whose buffer is a mean") {
  auto const plain = run(ds::qhm{.lr = 0.1, .nu = 0, .weight_decay = 0.1}, 9);
  CHECK(apart(plain, run(ds::sgd{.lr = 0.1, .weight_decay = 0.1}, 9)) <= 1e-15);
  auto const mean = run(ds::qhm{.lr = 0.4, .nu = 1, .beta = 0.75}, 9);
  CHECK(apart(mean, run(ds::sgd{.lr = 0.1, .momentum = 0.75}, 9)) <= 1e-14);
}

TEST_CASE("adamw without decay is adam, bit for bit") {
  CHECK(run(ds::adamw{.lr = 0.1, .weight_decay = 0}, 10) == run(ds::adam{.lr = 0.1}, 10));
}

TEST_CASE("qhadam: nu1 = nu2 = 1 is adam, decoupled adamw") {
  ds::qhadam rule{.lr = 0.02, .nu1 = 1, .nu2 = 1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1};
  CHECK(apart(run(rule, 9), run(ds::adam{0.02, 0.8, 0.9, 1e-3, 0.1}, 9)) <= 1e-14);
  rule.decoupled = true;
  CHECK(apart(run(rule, 9), run(ds::adamw{0.02, 0.8, 0.9, 1e-3, 0.1}, 9)) <= 1e-14);
}

TEST_CASE("qhadam: without moments a step is lr g / (|g| + eps)") {
  trial t(ds::qhadam{.lr = 0.5, .nu1 = 0, .nu2 = 0, .eps = 1}, {0});
  CHECK(t.step({3})[0] == near(-0.375));
}

TEST_CASE("adabound: after many steps both bounds are at final_lr") {
  auto const late = ds::adabound{.lr = 1e-3, .final_lr = 0.25}.at(1'000'000'000);
  CHECK(late.low == near(0.25, 1e-5));
  CHECK(late.high == near(0.25, 1e-5));
}

TEST_CASE("adabound: a schedule of lr scales the bounds, so that it can end a run") {
  ds::adabound rule{.lr = 0.02};
  CHECK(rule.base_lr == 0.02);
  auto const full = rule.at(50);
  rule.lr = 0.005;
  CHECK(rule.at(50).low == near(full.low / 4));
  CHECK(rule.at(50).high == near(full.high / 4));
  rule.lr = 0;
  trial t(rule, {1});
  CHECK(t.step({3})[0] == 1);
}

TEST_CASE("padam: partial = 0 is SGD with momentum, partial = 1/2 Adam, and 1/4 between") {
  auto const rule = [](double partial) {
    return ds::padam{.lr = 1, .partial = partial, .beta1 = 0.5, .beta2 = 0.75, .eps = 1};
  };
  trial sgd(rule(0), {0}), adam(rule(0.5), {0}), between(rule(0.25), {0});  // m = g / 2, v = g^2 / 4, rate 0.5 / 0.5
  CHECK(sgd.step({6})[0] == near(-3));
  CHECK(adam.step({6})[0] == near(-3 / 4.));
  CHECK(between.step({6})[0] == near(-3 / 2.));
}

namespace {

/// What apex's LARC does to a gradient before its optimizer steps, except for norms of 0.
std::vector<double> adapted(std::vector<double> const& p, std::vector<double> g, ds::larc<ds::sgd> const& r) {
  double const rate = r.trust * norm(p) / (norm(g) + norm(p) * r.weight_decay + r.eps);
  double const a = r.clip ? std::min(rate / r.lr, 1.0) : rate;
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = (g[i] + r.weight_decay * p[i]) * a;
  return g;
}

}  // namespace

TEST_CASE("larc: 100 steps of SGD and of Adam on gradients that a plain loop adapts, in both modes") {
  for (bool clip : {true, false})
    for (double trust : {0.002, 0.05}) {
      auto const both = [&]<class Rule>(Rule const& bare, double lr) {
        Rule inner = bare;
        inner.lr = lr;
        ds::larc<ds::sgd> const as_sgd{.lr = lr, .trust = trust, .eps = 1e-3, .weight_decay = 0.1, .clip = clip};
        ds::larc<Rule> const rule{
            .rule = bare, .lr = lr, .trust = trust, .eps = 1e-3, .weight_decay = 0.1, .clip = clip};
        problem<double> outer({5, 1, 12}), plain({5, 1, 12});
        ds::optimizer a{outer.parameters(), rule};
        ds::optimizer b{plain.parameters(), inner};
        for (int t = 1; t <= 100; ++t) {
          outer.set_gradients(t);
          plain.set_gradients(t);
          for (std::size_t k = 0; k < 3; ++k)
            std::ranges::copy(adapted(plain.value[k], plain.grad[k], as_sgd), plain.grad[k].begin());
          a.step();
          b.step();
        }
        CHECK(apart(outer.value, plain.value) <= 1e-13);
        CHECK(apart(outer.value, problem<double>({5, 1, 12}).value) >= 1e-3);
      };
      both(ds::sgd{.momentum = 0.9}, 0.02);
      both(ds::adam{.beta1 = 0.8, .eps = 1e-3}, 0.02);
      both(ds::nadam{.eps = 1e-3}, 0.02);
      both(ds::heavy_ball{.correction = true}, 0.02);
      both(ds::asgd{.lambd = 0.1, .t0 = 50}, 0.02);
    }
}

TEST_CASE("larc: has its own lr, also a scheduled one, and its own decay") {
  ds::larc<ds::adamw> const rule{.lr = 0.01, .trust = 1e9};  // always clipped: adamw without decay
  CHECK(apart(run(rule, 9), run(ds::adamw{.lr = 0.01, .weight_decay = 0}, 9)) <= 1e-15);
  auto const lr = ds::linear{.from = 0.1, .to = 0.01, .steps = 5};
  auto const scheduled = run(rule, 9, ds::learning_rate(lr));
  CHECK(apart(scheduled, run(ds::adamw{.weight_decay = 0}, 9, ds::learning_rate(lr))) <= 1e-15);
  static_assert(!ds::detail::inner_rule<ds::lamb> && !ds::detail::inner_rule<ds::dog>);
  static_assert(ds::update_rule<ds::larc<ds::adam>> && ds::has_sums<ds::larc<ds::adam>>);
  static_assert(ds::has_step_of_p<ds::madgrad> && ds::has_step_of_p<ds::cocob> && ds::has_step_of_p<ds::asgd>);
  static_assert(ds::has_step_of_p<ds::chain<ds::clip_value, ds::l1, ds::sgd>> && !ds::has_step_of_p<ds::adamw>);
  static_assert(ds::has_memory<ds::layerwise<ds::nadam>> && !ds::has_memory<ds::layerwise<ds::adam>>);
  static_assert(ds::update_rule<ds::layerwise<ds::sgd>> && ds::has_sums<ds::layerwise<ds::sgd>>);
  CHECK(std::string(ds::layerwise<ds::adam>::slots[1]) == "v");
}

TEST_CASE("layerwise: the ratio is clamped on request, and 1 where a norm is 0") {
  ds::layerwise<ds::sgd> const rule{.lr = 0.5, .min_ratio = 0.5, .max_ratio = 2};
  trial low(rule, {3, 4}), high(rule, {3, 4}), from_zero(rule, {0, 0}), at_rest(rule, {3, 4});
  CHECK(low.step({30, 40})[0] == near(3 - 0.5 * 0.5 * 30));
  CHECK(high.step({0.3, 0.4})[0] == near(3 - 0.5 * 2 * 0.3));
  CHECK(from_zero.step({2, -2}) == std::vector{-1.0, 1.0});
  CHECK(at_rest.step({0, 0}) == std::vector{3.0, 4.0});
}

TEST_CASE("layerwise: with a highest ratio of 1, the norm of a step is at most lr trust ||p||") {
  ds::layerwise<ds::sgd> const rule{.lr = 0.5, .trust = 0.25, .max_ratio = 1};
  trial large(rule, {3, 4}), small(rule, {3, 4});
  CHECK(large.step({30, 40})[0] == near(3 - 0.5 * 0.25 * 3));
  CHECK(small.step({0.3, 0.4})[0] == near(3 - 0.5 * 0.3));
}

namespace {

/// 100 steps of layerwise at a schedule, against the inner rule alone on parameters held at 0, whose steps are u.
template <class Inner> void scales(Inner inner, auto const& schedule, ds::layerwise<Inner> rule) {
  problem<double> ours({5, 1, 12}), steps({5, 1, 12}), theirs({5, 1, 12});
  ds::optimizer a{ours.parameters(), rule, ds::learning_rate(schedule)};
  inner.lr = 1;
  ds::optimizer b{steps.parameters(), inner};
  for (int t = 1; t <= 100; ++t) {
    ours.set_gradients(t);
    steps.set_gradients(t);
    for (auto& p : steps.value) std::ranges::fill(p, 0);
    a.step();
    b.step();
    for (std::size_t k = 0; k < 3; ++k) {
      auto& p = theirs.value[k];
      std::vector<double> u;
      for (std::size_t i = 0; i < p.size(); ++i) u.push_back(rule.weight_decay * p[i] - steps.value[k][i]);
      double const ratio = norm(p) > 0 && norm(u) > 0 ? norm(p) / norm(u) : 1;
      for (std::size_t i = 0; i < p.size(); ++i) p[i] -= schedule(t - 1) * ratio * u[i];
    }
  }
  CHECK(apart(ours.value, theirs.value) <= 1e-12);
  CHECK(apart(ours.value, problem<double>({5, 1, 12}).value) >= 1e-3);
}

}  // namespace

TEST_CASE("layerwise around rules with memory: each tensor's is in its norm and in its step") {
  auto const lr = ds::linear{.from = 0.02, .to = 0.005, .steps = 60};
  scales(ds::nadam{.eps = 1e-3}, lr, ds::layerwise<ds::nadam>{.rule = {.eps = 1e-3}, .weight_decay = 0.1});
  scales(ds::heavy_ball{.nesterov = true}, lr, ds::layerwise<ds::heavy_ball>{.rule = {.nesterov = true}});
}

TEST_CASE("sophia: m / max(gamma h, eps), clipped; negative curvature counts as eps") {
  std::vector<double> p{0, 0, 0, 0}, g{1, -1, 1, -8};
  ds::parameters<double> list;
  list.add("p", p.data(), g.data(), p.size());
  ds::optimizer opt{list, ds::sophia{.lr = 0.5, .beta1 = 0.5, .gamma = 0.25, .rho = 2, .eps = 0.5}};
  std::array const h{8.0, 4.0, -100.0, 8.0};
  opt.set_state<1>("p", std::span<double const>(h));
  opt.step();                                        // m = g / 2
  CHECK(p == std::vector{-0.125, 0.25, -0.5, 1.0});  // 0.5 / 2, -0.5 / 1, 0.5 / 0.5, -4 / 2 = -rho
  g[3] = -100;
  opt.step();
  CHECK(p[3] == 2.0);
  CHECK(opt.state<1>("p")[2] == -100);  // set by the caller
}

TEST_CASE("sophia: decay is decoupled and not clipped; bias correction is optax's") {
  trial t(ds::sophia{.lr = 0.5, .beta1 = 0.5, .weight_decay = 0.5}, {64});
  CHECK(t.step({0})[0] == 48);
  CHECK(ds::sophia{}.at(1).m_unbias == 1);
  CHECK(ds::sophia{.beta1 = 0.75, .bias_correction = true}.at(1).m_unbias == 4);
}

namespace {

/// YellowFin from the paper's algorithms, on all elements at once, with all earlier gradients instead of running means,
/// and the single step solved by bisection.
struct plain_yellowfin {
  ds::yellowfin r;
  std::vector<double> x;
  std::vector<std::vector<double>> gradients;
  std::vector<double> velocity, least, most, ratio;  // the last three: one number per step
  double mu = 0, rate = 0;
  int by_range = 0, by_cubic = 0;

  /// The mean with beta of f(i) at step i, with or without bias correction.
  template <class F> double mean(F f, bool corrected) const {
    double sum = 0, weights = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      double const weight = (1 - r.beta) * std::pow(r.beta, double(gradients.size() - 1 - i));
      sum += weight * f(i);
      weights += weight;
    }
    return corrected ? sum / weights : sum;
  }
  double square(std::size_t i) const { return norm(gradients[i]) * norm(gradients[i]); }

  void step(std::vector<double> const& g) {
    gradients.push_back(g);
    std::size_t const n = gradients.size(), first = n > 20 ? n - 20 : 0;
    double low = infinity, high = 0;  // algorithm 2
    for (std::size_t i = first; i < n; ++i) low = std::min(low, square(i)), high = std::max(high, square(i));
    least.push_back(low);
    most.push_back(high);
    double const h_min = std::exp(mean([&](auto i) { return std::log(least[i] + r.eps); }, true)) + r.eps;
    double const h_max = mean([&](auto i) { return most[i]; }, true) + r.eps;
    double mean_square = 0;  // algorithm 3
    for (std::size_t j = 0; j < g.size(); ++j)
      mean_square += std::pow(mean([&](auto i) { return gradients[i][j]; }, true), 2);
    double const C = std::max(mean([&](auto i) { return square(i); }, true) - mean_square, r.eps) + r.eps;
    ratio.push_back(mean([&](auto i) { return norm(gradients[i]); }, false) /  // algorithm 4
                    (mean([&](auto i) { return square(i); }, false) + r.eps));
    double const D = mean([&](auto i) { return ratio[i]; }, true) + r.eps;

    double from = 0, to = 1;  // single step: where the derivative of x^2 D^2 + (1 - x)^4 C / h_min^2 changes its sign
    for (int i = 0; i < 200; ++i) {
      double const at = (from + to) / 2;
      (at * D * D < 2 * std::pow(1 - at, 3) * C / (h_min * h_min) ? from : to) = at;
    }
    double const range = std::sqrt(std::max(h_max / h_min, 1.0)), root = std::max(from, (range - 1) / (range + 1));
    ++(from < (range - 1) / (range + 1) ? by_range : by_cubic);
    mu = n == 1 ? 0 : root * root;
    rate = n == 1 ? r.lr * r.first_lr : r.lr * (1 - root) * (1 - root) / h_min * std::min(double(n) / 200, 1.0);
    velocity.resize(g.size());
    for (std::size_t j = 0; j < g.size(); ++j) {
      velocity[j] = mu * velocity[j] + g[j] + r.weight_decay * x[j];
      x[j] -= rate * velocity[j];
    }
  }
};

}  // namespace

TEST_CASE("yellowfin: 300 steps as a plain loop over the paper's algorithms, with two tensors") {
  // Noise around a slope, so that the cubic decides; noise of changing size, so that the range of curvatures decides;
  // the same gradient at every step, without variance; and the slope of a bowl, at each one's own parameters.
  int by_range = 0, by_cubic = 0;
  for (ds::yellowfin rule : {ds::yellowfin{.lr = 0.5}, ds::yellowfin{.beta = 0.9, .first_lr = 0.01, .eps = 1e-3},
                             ds::yellowfin{.beta = 0.95, .eps = 1e-4, .weight_decay = 0.01}})
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<double> a{1, -2, 3}, b{0.5, -0.25}, ga(3), gb(2);
      ds::parameters<double> list;
      list.add("a", a.data(), ga.data(), a.size());
      list.add("b", b.data(), gb.data(), b.size());
      ds::optimizer opt{list, rule};
      plain_yellowfin plain{rule, {1, -2, 3, 0.5, -0.25}, {}, {}, {}, {}, {}};
      for (int t = 1; t <= 300; ++t) {
        auto const gradient = [&](std::size_t i, double x) {
          double const random = test::gradient(0, i, t);
          if (kind == 3) return 0.1 * double(i + 1) * (x - 2) + 0.125 * random;
          return kind == 0 ? 1 + 0.5 * random : kind == 1 ? random * (1 + t % 7) : 0.3;
        };
        std::vector<double> g(5);
        for (std::size_t i = 0; i < 5; ++i) {
          (i < 3 ? ga[i] : gb[i - 3]) = gradient(i, i < 3 ? a[i] : b[i - 3]);
          g[i] = gradient(i, plain.x[i]);
        }
        opt.step();
        plain.step(g);
        if (t == 1) CHECK(a[0] == near(1 - rule.lr * rule.first_lr * (g[0] + rule.weight_decay)));
      }
      double far = 0, way = 0;
      for (std::size_t i = 0; i < 5; ++i) {
        far = test::larger(far, std::abs((i < 3 ? a[i] : b[i - 3]) - plain.x[i]));
        way = std::max(way, std::abs(plain.x[i]));
      }
      CHECK(far <= 1e-9 * way);
      by_range += plain.by_range;
      by_cubic += plain.by_cubic;
    }
  CHECK(by_range >= 100);
  CHECK(by_cubic >= 100);
}

TEST_CASE("yellowfin: gradients without variance need no momentum, and a tensor at rest stays") {
  ds::yellowfin const rule{};
  ds::yellowfin::memory memory;
  ds::yellowfin::terms<double> k{};
  double m = 0;
  for (int t = 1; t <= 1000; ++t) {
    m = rule.beta * m + (1 - rule.beta) * 2;
    k = rule.at(t, {4, m * m}, memory);
  }
  CHECK(k.mu < 1e-3);
  CHECK(k.rate == near(0.25, 0.05));  // 1 / curvature, and ||g||^2 stands for that
  trial t(rule, {3});
  for (int i = 0; i < 30; ++i) CHECK(t.step({0})[0] == 3);
}

TEST_CASE("yellowfin: lr multiplies the tuned rate and changes nothing else") {
  ds::yellowfin rule{.lr = 1};
  ds::yellowfin::memory a, b;
  auto const one = [&](ds::yellowfin::memory& m) { return rule.at(1, {4, 1}, m), rule.at(2, {9, 2}, m); };
  auto const full = one(a);
  rule.lr = 0.5;
  auto const half = one(b);
  CHECK(half.rate == near(full.rate / 2));
  CHECK(half.mu == full.mu);
  CHECK(full.mu > 0);
}
