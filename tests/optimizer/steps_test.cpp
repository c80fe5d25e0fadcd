// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Whole steps of the host backend against a plain loop: the same bits.
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

#include "../support/naive.hpp"
#include "support/larger.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace ds = descent;
using ds::half, ds::bfloat16, ds::narrow, ds::widen;

namespace {

/// Sizes around packets of 8, warps, chunks of 4096 and two chunks.
std::vector<std::size_t> const sizes = {1, 0, 7, 8, 9, 64, 65, 4095, 4096, 4097, 8193, 3};
constexpr std::size_t gap = 5;  // elements between tensors that belong to no tensor

/// Tensors of all sizes in one block of values and one of gradients, every third one in group 1.
template <class Value, class Gradient> struct model {
  std::vector<Value> w;
  std::vector<Gradient> g;
  std::vector<std::size_t> at;
  ds::parameters<Value, Gradient> params;
  std::mt19937 random{7};

  model() {
    std::size_t total = gap;
    for (std::size_t n : sizes) at.push_back(total), total += n + gap;
    for (std::size_t i = 0; i < total; ++i) w.push_back(narrow<Value>(number())), g.push_back({});
    for (std::size_t t = 0; t < sizes.size(); ++t)
      params.add("p" + std::to_string(t), w.data() + at[t], g.data() + at[t], sizes[t], ds::group{group(t)});
  }
  static int group(std::size_t t) { return t % 3 == 0; }
  float number() { return float(int(random() % 2001) - 1000) / 512; }
  void new_gradients() {
    for (auto& x : g) x = narrow<Gradient>(number() / 4);
  }
  template <class Real> std::vector<Real> values(std::size_t t) const {
    std::vector<Real> x;
    for (std::size_t i = 0; i < sizes[t]; ++i) x.push_back(widen<Real>(w[at[t] + i]));
    return x;
  }
  template <class Real> std::vector<Real> gradients(std::size_t t) const {
    std::vector<Real> x;
    for (std::size_t i = 0; i < sizes[t]; ++i) x.push_back(widen<Real>(g[at[t] + i]));
    return x;
  }
  std::vector<float> between() const {  // elements that belong to no tensor
    std::vector<float> x;
    for (std::size_t t = 0; t < sizes.size(); ++t)
      for (std::size_t i = 1; i <= gap; ++i) x.push_back(widen<float>(w[at[t] - i]));
    return x;
  }
};

template <class T, class Real> Real stored(Real x) { return widen<Real>(narrow<T>(x)); }

/// The global norm as summation_order.hpp documents it: element j of packet q of a chunk in accumulator j
/// mod 4 of lane q mod 256.
double tree(double const* x, std::size_t n) { return n == 1 ? x[0] : tree(x, n / 2) + tree(x + n / 2, n / 2); }
double block(std::vector<double> const& lane) {
  double sum = tree(lane.data(), 32);
  for (std::size_t i = 32; i < lane.size(); i += 32) sum += tree(&lane[i], 32);
  return sum;
}
template <class M> double documented_norm(M const& m, auto counts) {
  std::vector<double> total(512, 0.0);
  std::size_t chunk = 0;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    std::vector<double> const g = m.template gradients<double>(t);
    for (std::size_t begin = 0; begin < g.size(); begin += 4096, ++chunk) {
      if (!counts(t)) continue;
      std::vector<std::array<double, 4>> lane(256, {0, 0, 0, 0});
      auto const square = [&](std::size_t i) { return i < g.size() ? g[i] * g[i] : 0.0; };
      for (std::size_t q = 0; q < 512; ++q)
        for (std::size_t j = 0; j < 4; ++j)
          lane[q % 256][j] += square(begin + 8 * q + j) + square(begin + 8 * q + j + 4);
      std::vector<double> folded;
      for (auto const& a : lane) folded.push_back((a[0] + a[2]) + (a[1] + a[3]));
      total[chunk % 512] += block(folded);
    }
  }
  return std::sqrt(block(total));
}
template <class M> double documented_norm(M const& m) {
  return documented_norm(m, [](std::size_t) { return true; });
}

}  // namespace

TEST_CASE("AdamW with half values, a master, mixed states, groups, schedule and clipping: every bit") {
  model<half, bfloat16> m;
  ds::linear const lr{.from = 0.1, .to = 0.01, .steps = 3};
  ds::optimizer opt{m.params,
                    ds::adamw{.beta2 = 0.9, .weight_decay = 0.1},
                    ds::learning_rate(lr),
                    ds::master<float>{},
                    ds::states<bfloat16, half>{},
                    ds::clip_norm{1.0}};
  opt.group(1).weight_decay = 0.5;
  std::vector<std::vector<float>> p;
  std::vector<naive::states<ds::adamw, float>> s;
  for (std::size_t t = 0; t < sizes.size(); ++t) p.push_back(m.values<float>(t)), s.emplace_back(sizes[t]);
  auto const between = m.between();
  bool good = true;
  for (int step = 0; step < 5; ++step) {
    m.new_gradients();
    double const norm = documented_norm(m), factor = norm > 1 ? 1 / norm : 1;
    opt.step();
    CHECK(opt.report().grad_norm == norm);
    CHECK(opt.report().clip_factor == factor);
    CHECK(opt.report().learning_rate == lr(step));
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      ds::adamw const r{.lr = lr(step), .beta2 = 0.9, .weight_decay = model<half, bfloat16>::group(t) ? 0.5 : 0.1};
      naive::step<ds::adamw, float>(r.at(step + 1), p[t], m.gradients<float>(t), s[t], factor);
      auto const master = opt.master("p" + std::to_string(t));
      auto const first = opt.state<0>("p" + std::to_string(t));
      auto const second = opt.state<1>("p" + std::to_string(t));
      for (std::size_t i = 0; i < sizes[t]; ++i) {
        s[t][i] = {stored<bfloat16>(s[t][i].m), stored<half>(s[t][i].v)};
        good = good && master[i] == p[t][i] && widen<float>(m.w[m.at[t] + i]) == stored<half>(p[t][i]);
        good = good && widen<float>(first[i]) == s[t][i].m && widen<float>(second[i]) == s[t][i].v;
      }
    }
  }
  CHECK(good);
  CHECK(m.between() == between);
}

TEST_CASE(
    "SGD on plain floats without a master, and on half values through a bfloat16 master: every "
    "bit") {
  model<float, float> f;
  model<half, half> h;
  ds::sgd const rule{.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01};
  ds::optimizer plain{f.params, rule};
  ds::optimizer small{h.params, rule, ds::master<bfloat16>{}};
  std::vector<std::vector<float>> p, q;
  std::vector<naive::states<ds::sgd, float>> s, u;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    p.push_back(f.values<float>(t));
    q.push_back(h.values<float>(t));
    for (float& x : q[t]) x = stored<bfloat16>(x);
    s.emplace_back(sizes[t]);
    u.emplace_back(sizes[t]);
  }
  bool good = true;
  for (int step = 1; step <= 3; ++step) {
    f.new_gradients();
    h.new_gradients();
    plain.step();
    small.step();
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      naive::step<ds::sgd, float>(rule.at(step), p[t], f.gradients<float>(t), s[t]);
      naive::step<ds::sgd, float>(rule.at(step), q[t], h.gradients<float>(t), u[t]);
      for (float& x : q[t]) x = stored<bfloat16>(x);
      good = good && p[t] == f.values<float>(t);
      auto const half_values = h.values<float>(t);
      for (std::size_t i = 0; i < sizes[t]; ++i) good = good && half_values[i] == stored<half>(q[t][i]);
    }
  }
  CHECK(good);
}

TEST_CASE("skipped steps change nothing, and the run continues as if they had never happened") {
  auto const train = [](bool with_bad_ones) {
    model<float, float> m;
    ds::warmup<ds::cosine> const lr{.steps = 2, .then = {.peak = 0.1, .floor = 0, .steps = 4}};
    ds::optimizer opt{m.params, ds::adam{}, ds::learning_rate(lr), ds::skip_nonfinite{}};
    for (int step = 0; step < 6; ++step) {
      m.new_gradients();
      if (with_bad_ones) {
        for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
          std::size_t const t = sizes.size() - 2, at = m.at[t] + std::size_t(step) * 1600;
          float const good = m.g[at];
          m.g[at] = bad;
          auto const w = m.w;
          auto const before = opt.report();
          std::vector<float> const state(opt.state("p10", "v").begin(), opt.state("p10", "v").end());
          opt.step();
          CHECK(m.w == w);
          CHECK(std::equal(state.begin(), state.end(), opt.state("p10", "v").begin()));
          CHECK(opt.report().step == before.step);
          CHECK(opt.report().skipped == before.skipped + 1);
          CHECK(opt.report().why == "the gradient of 'p10' is not finite");
          m.g[at] = good;
        }
      }
      opt.step();
      CHECK(opt.report().learning_rate == lr(step));
    }
    CHECK(opt.report().step == 6);
    return m.w;
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("a frozen tensor adds nothing to the norm, whose order stays the documented one") {
  model<float, half> m;
  ds::optimizer opt{m.params, ds::lion{}, ds::skip_nonfinite{}};
  m.new_gradients();
  opt.step();
  CHECK(opt.report().grad_norm == documented_norm(m));
  opt.freeze(1);
  auto const before = m.w;
  opt.step();
  CHECK(opt.report().grad_norm == documented_norm(m, [&](std::size_t t) { return m.group(t) == 0; }));
  std::size_t moved[2] = {0, 0};
  for (std::size_t t = 0; t < sizes.size(); ++t)
    for (std::size_t i = 0; i < sizes[t]; ++i) moved[m.group(t)] += m.w[m.at[t] + i] != before[m.at[t] + i];
  CHECK(moved[0] > 8000);  // all except those with gradient 0
  CHECK(moved[1] == 0);
}

TEST_CASE("finite gradients whose squares leave the range of float are no reason to skip") {
  model<float, float> m;
  ds::optimizer opt{m.params, ds::sgd{}, ds::clip_norm{1.0}};
  m.g[m.at[10] + 5] = 3e38f;
  opt.step();
  CHECK(opt.report().applied);
  CHECK(opt.report().grad_norm == double(3e38f));
}

TEST_CASE("finite double gradients whose squares leave the range of double are no reason to skip either") {
  model<double, double> m;
  ds::optimizer opt{m.params, ds::sgd{}, ds::skip_nonfinite{}};
  for (double& g : m.g) g = 0;
  m.g[m.at[4]] = 3e200, m.g[m.at[10]] = 4e200;
  opt.step();
  CHECK(opt.report().applied);
  CHECK(opt.report().grad_norm == doctest::Approx(5e200).epsilon(1e-15));
  for (double const g : {0x1p479, 0x1p480, 0x1p481}) {  // on both sides of the limit for adding them separately
    m.g[m.at[4]] = m.g[m.at[10]] = g;
    m.g[m.at[10] + 1] = m.g[m.at[10] + 2] = 0x1p480;
    opt.step();
    double const part = g / 0x1p480;
    CHECK(opt.report().grad_norm == doctest::Approx(std::sqrt(2 * part * part + 2) * 0x1p480).epsilon(1e-15));
  }
  for (double const bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    m.g[m.at[10]] = bad;
    opt.step();
    CHECK(!opt.report().applied);
  }
}

TEST_CASE("groups and tensors are clipped by their own norms, and AGC by their own parameters") {
  auto const check = [](auto policy, auto const& norm, auto const& factor_of) {
    using clip = decltype(policy);
    model<double, double> m;
    ds::optimizer opt{m.params, ds::sgd{.lr = 1}, policy, ds::static_loss_scale{4}};
    for (int step = 0; step < 2; ++step) {
      m.new_gradients();
      for (std::size_t t = 0; t < sizes.size(); ++t)  // of different sizes
        for (std::size_t i = 0; i < sizes[t]; ++i) m.g[m.at[t] + i] *= double(t + 1) / double(sizes[t] + 10);
      auto const w = m.w;
      opt.step();
      double smallest = 1, most = 0;
      for (std::size_t t = 0; t < sizes.size(); ++t) {
        double sum = 0, squares = 0;
        for (std::size_t u = 0; u < sizes.size(); ++u)
          if (clip::over == ds::scope::tensor ? u == t : m.group(u) == m.group(t))
            for (double g : m.template gradients<double>(u)) sum = norm.add(sum, std::abs(g) / 4);
        for (std::size_t i = 0; i < sizes[t]; ++i) squares += w[m.at[t] + i] * w[m.at[t] + i];
        double const factor = factor_of(norm.root(sum), std::sqrt(squares));
        smallest = std::fmin(smallest, factor);
        for (std::size_t i = m.at[t]; i < m.at[t] + sizes[t]; ++i)
          most = test::larger(most, std::abs(m.w[i] - (w[i] - m.g[i] / 4 * factor)));
      }
      CHECK(most < 1e-13);
      CHECK(smallest < 0.9);
      CHECK(opt.report().clip_factor == doctest::Approx(smallest).epsilon(1e-13));
    }
  };
  struct {
    double add(double sum, double g) const { return sum + g; }
    double root(double sum) const { return sum; }
  } const l1;
  struct {
    double add(double sum, double g) const { return sum + g * g; }
    double root(double sum) const { return std::sqrt(sum); }
  } const l2;
  struct {
    double add(double sum, double g) const { return std::fmax(sum, g); }
    double root(double sum) const { return sum; }
  } const largest;
  auto const to = [](double max) { return [max](double norm, double) { return norm > max ? max / norm : 1; }; };
  using enum ds::scope;
  check(ds::clip<ds::norm::l2, group>{0.1}, l2, to(0.1));
  check(ds::clip<ds::norm::l2, tensor>{0.1}, l2, to(0.1));
  check(ds::clip<ds::norm::l1, tensor>{0.2}, l1, to(0.2));
  check(ds::clip<ds::norm::inf, group>{0.01}, largest, to(0.01));
  check(ds::clip_adaptive{.c = 0.001, .eps = 20}, l2,
        [](double norm, double p) { return std::fmin(1, 0.001 * std::fmax(p, 20) / norm); });
}

TEST_CASE("the row of an element is found without a division: up to 2^48 elements, rows of any length") {
  std::int64_t const most = std::int64_t{1} << 48;
  std::int64_t wrong = 0;
  for (std::int64_t n :
       {2L, 3L, 5L, 7L, 8L, 641L, 4097L, 65537L, (1L << 31) - 1, (1L << 32) + 1, (1L << 40) - 87, (1L << 47) + 1, most})
    for (std::int64_t row : {std::int64_t(0), std::int64_t(1), most / n / 3, most / n - 1, most / n})
      for (std::int64_t i : {row * n - 1, row * n, row * n + 1, most - row})
        if (i >= 0 && i <= most) wrong += ds::detail::quotient(i, n, ds::detail::inverse_of_count(n)) != i / n;
  CHECK(wrong == 0);
}

TEST_CASE("AGC clips each row of a parameter that has a shape, also rows of several chunks and of parts of them") {
  ds::shape const shapes[] = {{5, 7}, {3, 5000}, {3000, 3}, {2, 4096}, {1, 9}, {11, 1}, {0, 4}};
  std::vector<std::vector<double>> w, g;
  ds::parameters<double> list;
  for (ds::shape const& s : shapes) {
    w.emplace_back(std::size_t(s.rows * s.columns)), g.emplace_back(w.back().size());
    for (std::size_t i = 0; i < w.back().size(); ++i) w.back()[i] = std::sin(double(i + 1)) * double(1 + i % 5);
  }
  for (std::size_t t = 0; t < w.size(); ++t)
    list.add("w" + std::to_string(t), w[t].data(), g[t].data(), shapes[t], ds::group{int(t % 2)});
  ds::optimizer opt{list, ds::sgd{.lr = 1}, ds::clip_adaptive{.c = 0.3, .eps = 2}, ds::static_loss_scale{4}};
  for (double size : {1., 1e200}) {
    for (std::size_t t = 0; t < w.size(); ++t)
      for (std::size_t i = 0; i < g[t].size(); ++i)
        g[t][i] = size * std::cos(double(3 * i + t)) * double(2 + 2 * (i / std::size_t(shapes[t].columns) % 3));
    auto const before = w;
    opt.step();
    double smallest = 1, most = 0;
    int clipped = 0, whole = 0;
    for (std::size_t t = 0; t < w.size(); ++t) {
      std::size_t const columns = shapes[t].columns == 1 ? w[t].size() : std::size_t(shapes[t].columns);
      for (std::size_t row = 0; row < w[t].size(); row += columns) {
        double of_g = 0, of_p = 0;
        for (std::size_t i = row; i < row + columns; ++i)
          of_g = std::hypot(of_g, g[t][i] / 4), of_p = std::hypot(of_p, before[t][i]);
        double const factor = std::fmin(1, 0.3 * std::fmax(of_p, 2) / of_g);
        smallest = std::fmin(smallest, factor);
        factor < 1 ? ++clipped : ++whole;
        for (std::size_t i = row; i < row + columns; ++i)
          most = test::larger(most, std::abs(w[t][i] - (before[t][i] - g[t][i] / 4 * factor)));
      }
    }
    CHECK(most < 1e-11);
    CHECK(clipped > 100);
    CHECK((size > 1 || whole > 100));
    CHECK(opt.report().clip_factor == doctest::Approx(smallest).epsilon(1e-12));
  }
}

TEST_CASE("zero_grad{} zeroes after a skip as after an update, but not what is frozen") {
  model<float, float> m;
  ds::optimizer opt{m.params, ds::sgd{}, ds::zero_grad{}, ds::skip_nonfinite{}};
  opt.freeze(1);
  for (bool bad : {false, true}) {
    m.new_gradients();
    if (bad) m.g[m.at[11]] = std::numeric_limits<float>::infinity();
    auto const before = m.g;
    opt.step();
    CHECK(opt.report().applied == !bad);
    bool zero = true, kept = true;
    for (std::size_t t = 0; t < sizes.size(); ++t)
      for (std::size_t i = m.at[t]; i < m.at[t] + sizes[t]; ++i)
        (m.group(t) ? kept : zero) &= m.g[i] == (m.group(t) ? before[i] : 0);
    CHECK(zero);
    CHECK(kept);
  }
}
