// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Rules with sums over a tensor or over the model, in double, against sums written out here.
#include <descent/clip.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>

#include "naive.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace ds = descent;

namespace {

std::vector<std::size_t> const sizes = {5, 4097, 1, 0, 8, 9000};

struct model {
  std::vector<std::vector<double>> w, g;
  ds::parameters<double> params;
  model() {
    for (std::size_t n : sizes) w.emplace_back(n), g.emplace_back(n);
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      for (std::size_t i = 0; i < sizes[t]; ++i) w[t][i] = std::sin(double(i + 1)) * double(t + 1);
      params.add(std::to_string(t), w[t].data(), g[t].data(), sizes[t], ds::group{t == 1});
    }
  }
  void new_gradients(int step) {
    for (auto& x : g)
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(double(i * i + std::size_t(step)));
  }
};

/// Everything a rule sees, one tensor after the other.
template <class Rule> struct written_out {
  using sums = typename Rule::template sums<double>;
  std::vector<std::vector<double>> p;
  std::vector<naive::states<Rule, double>> s;

  explicit written_out(model const& m) : p(m.w) {
    for (auto const& x : p) {
      s.emplace_back(x.size());
      if constexpr (ds::has_start<Rule>)
        for (std::size_t i = 0; i < x.size(); ++i) s.back()[i] = Rule{}.start(x[i]);
    }
  }
  sums total(std::size_t t, Rule const& rule, int step, std::vector<double> const& g,
             double factor) const {
    constexpr std::size_t n = ds::detail::members<Rule::template sums>;
    std::vector<long double> sum(n);
    auto const k = rule.at(step);
    for (std::size_t i = 0; i < g.size(); ++i) {
      sums one;
      if constexpr (ds::has_sums_of_state<Rule>)
        one = Rule::sum(p[t][i], g[i] * factor, s[t][i], k);
      else one = Rule::sum(p[t][i], g[i] * factor, k);
      for (std::size_t c = 0; c < n; ++c) sum[c] += reinterpret_cast<double const*>(&one)[c];
    }
    sums all;
    for (std::size_t c = 0; c < n; ++c) reinterpret_cast<double*>(&all)[c] = double(sum[c]);
    return all;
  }
  bool near(model const& m) const {
    for (std::size_t t = 0; t < sizes.size(); ++t)
      for (std::size_t i = 0; i < sizes[t]; ++i)
        if (!(std::abs(p[t][i] - m.w[t][i]) <= 1e-12 * (1 + std::abs(p[t][i])))) return false;
    return true;
  }
};

/// The factor of all gradients, or of one tensor's.
double factor_of(model const& m, double max, bool alone, std::size_t tensor) {
  long double sum = 0;
  for (std::size_t t = 0; t < sizes.size(); ++t)
    for (double one : m.g[t])
      if (!alone || t == tensor) sum += one * one;
  double const norm = double(std::sqrt(sum));
  return norm > max ? max / norm : 1;
}

template <class Rule, class... Ps>
void check_per_tensor(Rule rule, Rule other, bool clips, Ps... policies) {
  model m;
  ds::optimizer opt{m.params, rule, policies...};
  opt.group(1) = other;
  written_out<Rule> want(m);
  for (int step = 1; step <= 4; ++step) {
    m.new_gradients(step);
    opt.step();
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      double const factor = clips ? factor_of(m, 1, (false || ... || (Ps::over == ds::scope::tensor)), t) : 1;
      Rule const& r = t == 1 ? other : rule;
      naive::step<Rule, double>(r.at(step, want.total(t, r, step, m.g[t], factor)), want.p[t],
                                m.g[t], want.s[t], factor);
    }
    CHECK(want.near(m));
  }
}

}  // namespace

TEST_CASE(
    "LARS: a ratio for each tensor, from the clipped gradients, with its own group's numbers") {
  ds::lars const rule{.lr = 2, .weight_decay = 0.1, .trust = 0.5},
      other{.lr = 3, .momentum = 0.5, .trust = 0.25};
  check_per_tensor(rule, other, false);
  check_per_tensor(rule, other, true, ds::clip_norm{1.0});
}

TEST_CASE("LAMB: a ratio for each tensor, from states as they are before the update") {
  ds::lamb const rule{.lr = 0.1, .weight_decay = 0.1}, other{.lr = 0.2, .beta1 = 0.5};
  check_per_tensor(rule, other, false);
  check_per_tensor(rule, other, true, ds::clip_norm{1.0});
  check_per_tensor(rule, other, true, ds::clip<ds::norm::l2, ds::scope::tensor>{1.0});
}

TEST_CASE("DoG: one radius for the whole model, and a start that the update leaves alone") {
  model m;
  auto const start = m.w;
  ds::dog const rule{.reps = 1e-2}, other{.lr = 0.5, .reps = 1e-2, .weight_decay = 0.125};
  ds::optimizer opt{m.params, rule, ds::skip_nonfinite{}};
  opt.group(1) = other;
  written_out<ds::dog> want(m);
  ds::dog::memory memory[2];
  for (int step = 1; step <= 5; ++step) {
    m.new_gradients(step);
    if (step == 3) {  // a skipped step must not touch the memory of the sums
      double const good = m.g[4][7];
      m.g[4][7] = std::nan("");
      opt.step();
      CHECK(opt.report().skipped == 1);
      m.g[4][7] = good;
    }
    opt.step();
    ds::dog::sums<double> sum{0, 0, 0};
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      auto const one = want.total(t, t == 1 ? other : rule, step, m.g[t], 1);
      sum = {sum.dd + one.dd, sum.gg + one.gg, sum.pp + one.pp};
    }
    ds::dog::terms<double> const k[2] = {rule.at(step, sum, memory[0]),
                                         other.at(step, sum, memory[1])};
    for (std::size_t t = 0; t < sizes.size(); ++t)
      naive::step<ds::dog, double>(k[t == 1], want.p[t], m.g[t], want.s[t]);
    CHECK(want.near(m));
    for (std::size_t t = 0; t < sizes.size(); ++t)
      CHECK(
          std::equal(start[t].begin(), start[t].end(), opt.state(std::to_string(t), "p0").begin()));
  }
}

TEST_CASE("frozen tensors count in no sum and keep their values") {
  model m, alone;
  ds::optimizer opt{m.params, ds::dog{.reps = 1e-2}};
  opt.freeze(1);
  ds::parameters<double> rest;
  for (std::size_t t = 0; t < sizes.size(); ++t)
    if (t != 1) rest.add(std::to_string(t), alone.w[t].data(), alone.g[t].data(), sizes[t]);
  ds::optimizer without{rest, ds::dog{.reps = 1e-2}};
  auto const frozen = m.w[1];
  for (int step = 1; step <= 3; ++step) {
    m.new_gradients(step);
    alone.new_gradients(step);
    opt.step();
    without.step();
  }
  CHECK(m.w[1] == frozen);
  for (std::size_t t = 0; t < sizes.size(); ++t)
    if (t != 1)
      for (std::size_t i = 0; i < sizes[t]; ++i)
        CHECK(m.w[t][i] == doctest::Approx(alone.w[t][i]).epsilon(1e-12));
}

TEST_CASE("a frozen tensor of LAMB starts again with its old state") {
  model m;
  ds::optimizer opt{m.params, ds::lamb{}};
  m.new_gradients(1);
  opt.step();
  std::vector<double> const before(opt.state("1", "m").begin(), opt.state("1", "m").end());
  auto const w = m.w[1];
  opt.freeze(1);
  opt.step();
  CHECK(m.w[1] == w);
  CHECK(std::equal(before.begin(), before.end(), opt.state("1", "m").begin()));
  opt.freeze(1, false);
  opt.step();
  CHECK(m.w[1] != w);
}
