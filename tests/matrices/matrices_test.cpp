// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Matrices and other parameters in one optimizer: which rule updates each, and what they share.
#include <descent/cost.hpp>
#include <descent/matrices/host.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/maximize.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/kl_shampoo.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/prodigy.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/shampoo.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/soap.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>
#include <descent/schedules/warmup.hpp>

#include <doctest/doctest.h>

#include "support/larger.hpp"
#include "support/message.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds = descent;

namespace {

struct tensor_shape { std::int64_t rows, columns; int group; };

/// Some tensors with numbers that are exact in bfloat16.
template <class Value, class Gradient = Value> struct model {
  std::vector<tensor_shape> shapes;
  std::vector<std::vector<Value>> value;
  std::vector<std::vector<Gradient>> gradient;
  ds::parameters<Value, Gradient> params;

  explicit model(std::vector<tensor_shape> s) : shapes(std::move(s)), value(shapes.size()), gradient(shapes.size()) {
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      auto const n = std::size_t(shapes[k].rows * shapes[k].columns);
      for (std::size_t i = 0; i < n; ++i) value[k].push_back(Value(float(int((i * 7 + k * 3) % 11) - 5) / 8));
      gradient[k].resize(n);
      params.add("w" + std::to_string(k), value[k].data(), gradient[k].data(),
                 ds::shape{shapes[k].rows, shapes[k].columns}, ds::group{shapes[k].group});
    }
    set_gradients(0);
  }
  void set_gradients(int t, float scale = 1) {
    for (std::size_t k = 0; k < shapes.size(); ++k)
      for (std::size_t i = 0; i < gradient[k].size(); ++i)
        gradient[k][i] = Gradient(
            scale * float(int((i * i * 37 + i * 11 + std::size_t(t) * 101 * (i + 1) + k * 59) % 127) - 63) / 64);
  }
  double squares() const {
    double sum = 0;
    for (auto const& g : gradient)
      for (auto x : g) sum += double(float(x)) * double(float(x));
    return sum;
  }
};

std::vector<tensor_shape> const few = {{5, 1, 0}, {3, 4, 0}, {7, 1, 0}, {6, 2, 0}};

template <class A, class B> bool same(A const& a, B const& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// Some of the tensors, as vectors.
template <class Model> auto only(Model& m, std::vector<std::size_t> const& numbers) {
  decltype(m.params) list;
  for (std::size_t k : numbers)
    list.add("w" + std::to_string(k), m.value[k].data(), m.gradient[k].data(), m.value[k].size());
  return list;
}

using matrix = std::vector<double>;
matrix product(matrix const& a, matrix const& b, std::size_t m, std::size_t k, std::size_t n) {
  matrix c(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t l = 0; l < k; ++l)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
  return c;
}
matrix transposed(matrix const& a, std::size_t m, std::size_t n) {
  matrix t(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) t[j * m + i] = a[i * n + j];
  return t;
}

/// X <- a X + b X X' X + c (X X')^2 X, five times, from d / ||d||.
matrix orthogonalised(matrix x, std::size_t m, std::size_t n) {
  double norm = 0;
  for (double e : x) norm += e * e;
  for (double& e : x) e /= std::max(std::sqrt(norm), 1e-7);
  for (int s = 0; s < 5; ++s) {
    matrix const xt = transposed(x, m, n), third = product(product(x, xt, m, n, m), x, m, m, n),
                 fifth = product(product(third, xt, m, n, m), x, m, m, n);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] - 4.7750 * third[i] + 2.0315 * fifth[i];
  }
  return x;
}

}  // namespace

TEST_CASE("matrices of any shape follow Muon's formula; all others the optimizer's rule, bit for bit") {
  model<double> x({{5, 1, 0}, {2, 3, 0}, {1, 9, 0}, {64, 17, 0}, {17, 64, 0}, {0, 4, 0}, {3, 3000, 0}, {9, 1, 0}});
  auto plain = x;  // only the tensors that are not matrices
  auto const rest = only(plain, {0, 2, 5, 7});
  ds::optimizer opt{x.params, ds::adamw{.lr = 0.01}, ds::matrices{ds::muon{.lr = 0.02}}};
  ds::optimizer without{rest, ds::adamw{.lr = 0.01}};
  auto p = x.value, m = x.value;
  for (auto& one : m) std::fill(one.begin(), one.end(), 0);
  for (int t = 1; t <= 3; ++t) {
    x.set_gradients(t), plain.set_gradients(t);
    opt.step(), without.step();
    for (std::size_t k : {1, 3, 4, 6}) {
      auto const rows = std::size_t(x.shapes[k].rows), columns = std::size_t(x.shapes[k].columns);
      matrix d(rows * columns);
      for (std::size_t i = 0; i < d.size(); ++i) {
        m[k][i] = 0.95 * m[k][i] + 0.05 * x.gradient[k][i];
        d[i] = 0.95 * m[k][i] + 0.05 * x.gradient[k][i];
      }
      d = orthogonalised(d, rows, columns);
      double const scale = std::sqrt(std::max(1.0, double(rows) / double(columns)));
      double worst = 0;
      for (std::size_t i = 0; i < d.size(); ++i) {
        p[k][i] -= 0.02 * 0.1 * p[k][i] + 0.02 * scale * d[i];
        worst = test::larger(worst, std::abs(p[k][i] - x.value[k][i]));
      }
      INFO(rows, " x ", columns, ", step ", t);
      CHECK(worst <= 1e-10);
    }
    for (std::size_t k : {0, 2, 5, 7}) CHECK(same(x.value[k], plain.value[k]));
  }
}

TEST_CASE("coefficients of each iteration: each set is its polynomials, and how near 1 singular values end") {
  using sets = ds::newton_schulz;
  struct one { sets of; int steps; double low, high; };  // where singular values from 0.003 to 1.001 end
  for (one const& set : {one{sets::quintic(), 5, 0.68, 1.21}, {sets::polar_express(), 5, 0.85, 1.15},
                         {sets::cans(), 5, 0.88, 1.13},
                         {sets::deepseek_v4(), 10, 0.999, 1.001}, {sets::all(1.5, -0.5, 0), 30, 0.999, 1.001}}) {
    auto const ends = [&](double s) {
      for (int i = 0; i < set.steps; ++i) {
        auto const [a, b, c] = set.of.at(i);
        s = a * s + b * s * s * s + c * s * s * s * s * s;
      }
      return s;
    };
    for (double s = 1.001; s >= 0.003; s /= 1.003) {  // rounding may make 1 a little larger
      CHECK(ends(s) > set.low);
      CHECK(ends(s) < set.high);
    }
    // Orthogonal rows of length 0.8, 0.48 and 0.36: the singular values of the normalized direction.
    model<double> x({{3, 4, 0}});
    x.value[0].assign(12, 0);
    x.gradient[0] = {0, 0.8, 0, 0, 0, 0, 0, 0.48, 0.36, 0, 0, 0};
    ds::optimizer opt{x.params, ds::adamw{.lr = 0.01},
                      ds::matrices{ds::muon{.lr = 1, .ns_steps = set.steps, .coefficients = set.of}}};
    opt.step();
    double const norm = std::sqrt(0.8 * 0.8 + 0.48 * 0.48 + 0.36 * 0.36);
    auto const near = [&](std::size_t i, double s) { CHECK(x.value[0][i] == doctest::Approx(-ends(s / norm))); };
    near(1, 0.8), near(7, 0.48), near(8, 0.36);
  }
  auto const refused = [](ds::muon const& rule) { return test::message([&] { ds::check_rule<double>(rule); }); };
  CHECK(refused({.beta2 = 0.9}) == "muon: beta2 must be left alone without normalize_rows, is 0.9");
  CHECK(refused({.eps2 = 0}) == "muon: eps2 must be left alone without normalize_rows and exact_rms, is 0");
  CHECK(refused({.normalize_rows = true, .beta2 = 1}) == "muon: beta2 must be in [0, 1), is 1");
  CHECK(refused({.adjust = ds::muon::adjust_by::exact_rms, .eps2 = 0}).empty());
  ds::muon wrong, huge;
  huge.coefficients.of[9][2] = 1e300;
  CHECK(test::message([&] { huge.check(); }) == "muon: coefficients must be finite in float, is 1e+300");
  for (auto precision : {ds::operands::exact, ds::operands::tf32, ds::operands::bf16}) {
    for (auto const& of : {sets::quintic(), sets::polar_express(), sets::all(1.5, -0.5, 0)})
      CHECK(refused({.coefficients = of, .precision = precision}).empty());
    CHECK(refused({.ns_steps = 10, .coefficients = sets::deepseek_v4(), .precision = precision}).empty());
    auto const cans = refused({.coefficients = sets::cans(), .precision = precision});
    std::string const rounded =
        "muon: the largest singular value that coefficients can reach at this precision must be";
    CHECK(cans.starts_with(precision == ds::operands::exact ? "" : rounded + " below 2, is "));
    CHECK(cans.empty() == (precision == ds::operands::exact));
  }
  CHECK(sets::all(2, 0, 0).largest(3, 0.5) == 27);
  CHECK(sets::all(1.5, -0.5, 0).largest(9, 1e-3) == doctest::Approx(1));  // at 1
  for (int at_once : {0, 17}) {
    ds::matrices policy{ds::muon{}};
    policy.at_once = at_once;
    CHECK(test::message([&] { ds::check_rule<float>(policy); }) ==
          "matrices: at_once must be in [1, 16], is " + std::to_string(at_once));
  }
  for (int count : {-1, 0, 11}) {
    wrong.coefficients.count = count;
    CHECK(test::message([&] { wrong.check(); }) ==
          "muon: coefficients.count must be in [1, 10], is " + std::to_string(count));
  }
}

TEST_CASE("one tensor with a gradient that is not finite skips the step for all, matrix or not") {
  for (std::size_t bad : {0, 1, 2, 3}) {
    model<float> x(few);
    ds::optimizer opt{x.params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::skip_nonfinite{}, ds::zero_grad{}};
    opt.step();
    auto const before = x.value;
    std::vector<float> const m(opt.matrix_state<0>("w1").begin(), opt.matrix_state<0>("w1").end());
    x.set_gradients(2);
    x.gradient[bad].back() = std::numeric_limits<float>::quiet_NaN();
    opt.step();
    CHECK(!opt.report().applied);
    CHECK(opt.report().why == "the gradient of 'w" + std::to_string(bad) + "' is not finite");
    CHECK(opt.diagnose()[bad].name == "w" + std::to_string(bad));
    CHECK(x.value == before);
    CHECK(same(opt.matrix_state<0>("w1"), m));
    CHECK(x.squares() == 0);  // but gradients are zeroed
    x.set_gradients(2);
    opt.step();
    CHECK(opt.report().applied);
    CHECK(opt.report().step == 2);
    CHECK(x.value[1] != before[1]);
    CHECK(x.squares() == 0);
  }
}

namespace {
struct broken_at {
  std::int64_t step;
  double bad;
  double operator()(std::int64_t t) const { return t == step ? bad : 0.05; }
};
}  // namespace

TEST_CASE("a field of the matrix rule that is out of its range skips the step for all, or is refused at the start") {
  for (double const bad : {std::numeric_limits<double>::quiet_NaN(), 1e39, -0.1}) {
    model<float> x(few);
    ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{ds::muon{}}, ds::vary<&ds::muon::lr>(broken_at{1, bad}),
                      ds::zero_grad{}};
    opt.step();
    auto const before = x.value;
    x.set_gradients(1);
    opt.step();
    CHECK(opt.report().step == 1);
    CHECK(opt.report().skipped == 1);
    CHECK(opt.report().why.starts_with("the matrix rule's lr of group 0 must be finite "));
    CHECK(opt.explain().find("matrix.lr follows a schedule and must be finite and at least 0, ") != std::string::npos);
    CHECK(x.value == before);
    for (auto const& g : x.gradient) CHECK(std::all_of(g.begin(), g.end(), [](float one) { return one == 0; }));
    try {
      ds::optimizer{x.params, ds::sgd{}, ds::matrices{ds::muon{}}, ds::vary<&ds::muon::lr>(broken_at{0, 1e39}),
                    ds::zero_grad{}};
      FAIL("it was not refused");
    } catch (std::invalid_argument const& e) {
      CHECK(e.what() == std::string("schedules at update 1, group 0: muon: lr must be finite in float, is 1e+39"));
    }
  }
}

TEST_CASE("one norm over all gradients and one factor for all") {
  model<double> x(few);
  auto const start = x.value;
  ds::optimizer opt{x.params, ds::sgd{.lr = 1}, ds::matrices{ds::muon{.momentum = 0.5}}, ds::clip_norm{0.25}};
  opt.step();
  double const norm = std::sqrt(x.squares()), factor = 0.25 / norm;
  CHECK(opt.report().grad_norm == doctest::Approx(norm).epsilon(1e-12));
  CHECK(opt.report().clip_factor == doctest::Approx(factor).epsilon(1e-6));
  for (std::size_t i = 0; i < start[0].size(); ++i)
    CHECK(x.value[0][i] == doctest::Approx(start[0][i] - factor * x.gradient[0][i]).epsilon(1e-6));
  auto const m = opt.matrix_state<0>("w3");
  for (std::size_t i = 0; i < m.size(); ++i)
    CHECK(m[i] == doctest::Approx(0.5 * factor * x.gradient[3][i]).epsilon(1e-6));
  CHECK(opt.gradient_norm("w3") > 0);
}

TEST_CASE("each tensor clipped by itself: matrices, too") {
  model<double> x(few);
  ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{ds::muon{.momentum = 0}},
                    ds::clip<ds::norm::l2, ds::scope::tensor>{0.5}};
  opt.step();
  double m = 0;
  for (double e : opt.matrix_state<0>("w1")) m += e * e;
  CHECK(std::sqrt(m) == doctest::Approx(0.5).epsilon(1e-6));
}

TEST_CASE("sums of the optimizer's rule leave the matrices out") {
  auto const law = [](auto rule, auto... policies) {
    model<float> x(few);
    auto alone = x;
    auto const rest = only(alone, {0, 2});
    ds::optimizer opt{x.params, rule, ds::matrices{ds::muon{}}, policies...};
    ds::optimizer without{rest, rule, policies...};
    for (int t = 1; t <= 4; ++t) {
      x.set_gradients(t), alone.set_gradients(t);
      opt.step(), without.step();
    }
    CHECK(same(x.value[0], alone.value[0]));
    CHECK(same(x.value[2], alone.value[2]));
    CHECK(x.value[1] != alone.value[1]);
    CHECK(opt.report().grad_norm == doctest::Approx(std::sqrt(x.squares())));  // but the norm is that of all tensors
  };
  law(ds::lamb{.lr = 0.1});
  law(ds::dog{.reps = 0.1});
  law(ds::prodigy{});
  law(ds::lamb{.lr = 0.1}, ds::clip<ds::norm::l2, ds::scope::tensor>{0.5});
}

TEST_CASE("masters, remainders and averages of matrices are those of other parameters") {
  model<float> x(few);
  model<ds::bfloat16> y(few), z(few);
  ds::muon const rule{.lr = 0.01};
  ds::optimizer exact{x.params, ds::adamw{}, ds::matrices{rule}, ds::ema{0.5}};
  ds::optimizer with_master{y.params, ds::adamw{}, ds::matrices{rule}, ds::master<float>{}, ds::ema{0.5}};
  ds::optimizer with_remainder{z.params, ds::adamw{}, ds::matrices{rule}, ds::master_remainder{}};
  std::vector<float> mean(x.value[1]);
  for (int t = 1; t <= 5; ++t) {
    x.set_gradients(t), y.set_gradients(t), z.set_gradients(t);
    exact.step(), with_master.step(), with_remainder.step();
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = 0.5f * mean[i] + 0.5f * x.value[1][i];
  }
  for (std::size_t k = 0; k < few.size(); ++k) {
    auto const name = "w" + std::to_string(k);
    CHECK(same(with_master.master(name), x.value[k]));
    CHECK(same(with_master.average(name), exact.average(name)));
    for (std::size_t i = 0; i < x.value[k].size(); ++i) {
      CHECK(float(y.value[k][i]) == float(ds::bfloat16(x.value[k][i])));
      CHECK(std::abs(float(z.value[k][i]) - x.value[k][i]) <= std::abs(x.value[k][i]) / 128);
    }
  }
  CHECK(same(exact.average("w1"), mean));
}

TEST_CASE("accumulation, noise, maximize, lookahead and stochastic rounding work with matrices") {
  SUBCASE("two halves are one whole") {
    model<double> x(few), y(few);
    ds::optimizer one{x.params, ds::adamw{}, ds::matrices{ds::muon{}}};
    ds::optimizer two{y.params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::accumulate{2}};
    for (int t = 1; t <= 3; ++t) {
      x.set_gradients(t), y.set_gradients(t, 2);
      one.step(), two.step(), two.step();
    }
    CHECK(x.value == y.value);
    CHECK(two.report().step == 3);
  }
  SUBCASE("uphill is downhill of the negative") {
    model<float> x(few), y(few);
    ds::optimizer down{x.params, ds::adamw{}, ds::matrices{ds::muon{}}};
    ds::optimizer up{y.params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::maximize{}};
    x.set_gradients(1), y.set_gradients(1, -1);
    down.step(), up.step();
    CHECK(x.value == y.value);
  }
  SUBCASE("lookahead goes half the way of two updates") {
    model<double> x(few), y(few);
    auto const start = x.value;
    ds::optimizer one{x.params, ds::adamw{}, ds::matrices{ds::muon{}}};
    ds::optimizer slow{y.params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::lookahead{.k = 2, .alpha = 0.5}};
    for (int t = 1; t <= 2; ++t) {
      x.set_gradients(t), y.set_gradients(t);
      one.step(), slow.step();
    }
    for (std::size_t i = 0; i < start[1].size(); ++i)
      CHECK(y.value[1][i] == doctest::Approx(start[1][i] + 0.5 * (x.value[1][i] - start[1][i])));
  }
  SUBCASE("ema_nesterov takes the whole update ahead of the parameters") {
    model<double> x(few), y(few);
    ds::adafactor const follows_p{.lr = 0.5, .clip = 1e6};  // its step is rms(p) long
    ds::optimizer one{x.params, ds::adamw{}, ds::matrices{follows_p}};
    ds::optimizer ahead{y.params, ds::adamw{}, ds::matrices{follows_p}, ds::ema_nesterov{.momentum = 0}};
    auto parameters = x.value, last = x.value;
    for (int t = 1; t <= 3; ++t) {
      for (std::size_t k = 0; k < x.value.size(); ++k)
        for (std::size_t i = 0; i < x.value[k].size(); ++i)
          x.value[k][i] = parameters[k][i] + 0.5 * (parameters[k][i] - last[k][i]);
      for (std::size_t i = 0; i < x.value[1].size(); ++i) CHECK(y.value[1][i] == doctest::Approx(x.value[1][i]));
      x.set_gradients(t), y.set_gradients(t);
      one.step(), ahead.step();
      last = parameters, parameters = x.value;
      for (std::size_t i = 0; i < x.value[1].size(); ++i) CHECK(ahead.slow("w1")[i] == doctest::Approx(x.value[1][i]));
    }
  }
  SUBCASE("value clipping comes before the momentum") {
    model<double> x(few);
    auto const start = x.value;
    ds::optimizer opt{x.params, ds::adamw{}, ds::matrices{ds::muon{.lr = 1, .momentum = 0}}, ds::clip_value{0.001}};
    opt.step();
    double moved = 0;
    for (double m : opt.matrix_state<0>("w1")) CHECK(std::abs(m) <= 0.001);
    for (std::size_t i = 0; i < start[1].size(); ++i)
      moved = test::larger(moved, std::abs(x.value[1][i] - start[1][i]));
    CHECK(moved > 0.1);  // and not after it
  }
  SUBCASE("rounding at random is different from rounding to nearest, and is as far away at most as a bfloat16") {
    model<ds::bfloat16> x(few), y(few);
    ds::optimizer nearest{x.params, ds::adamw{}, ds::matrices{ds::muon{}}};
    ds::optimizer random{y.params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::stochastic_rounding{.seed = 5}};
    nearest.step(), random.step();
    bool differs = false;
    for (std::size_t i = 0; i < x.value[1].size(); ++i) {
      float const a = x.value[1][i], b = y.value[1][i];
      differs = differs || a != b;
      CHECK(std::abs(a - b) <= std::abs(a) / 64);
    }
    CHECK(differs);
  }
}

TEST_CASE("frozen matrices stay, and count in no norm") {
  model<float> x({{5, 1, 0}, {3, 4, 1}, {4, 3, 0}});
  ds::optimizer opt{x.params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::skip_nonfinite{}};
  opt.freeze(1);
  x.gradient[1][0] = std::numeric_limits<float>::infinity();
  auto const before = x.value;
  opt.step();
  CHECK(opt.report().applied);
  CHECK(x.value[1] == before[1]);
  CHECK(x.value[2] != before[2]);
  for (float m : opt.matrix_state<0>("w1")) CHECK(m == 0);
}

TEST_CASE("a group alone") {
  model<float> x({{5, 1, 0}, {3, 4, 0}, {4, 3, 1}});
  auto y = x;
  ds::parameters<float> vectors;
  vectors.add("w1", y.value[1].data(), y.gradient[1].data(), y.value[1].size());
  ds::optimizer opt{x.params, ds::adamw{}, ds::matrices{ds::muon{}, ds::group{1}}};
  ds::optimizer plain{vectors, ds::adamw{}};
  opt.step(), plain.step();
  CHECK(x.value[1] == y.value[1]);
  CHECK(opt.matrix_state<0>("w1").empty());
  CHECK(opt.matrix_state<0>("w2").size() == 12);
}

TEST_CASE("schedules and changes of the matrix rule; its state can be restored") {
  model<double> x(few), y(few), z(few);
  ds::optimizer opt{x.params, ds::adamw{.lr = 0.5}, ds::matrices{ds::muon{.lr = 9}},
                    ds::learning_rate(ds::constant{0.01}), ds::vary<&ds::muon::lr>(ds::constant{0.03})};
  ds::optimizer same_rates{y.params, ds::adamw{.lr = 0.01}, ds::matrices{ds::muon{.lr = 9}}};
  same_rates.matrix_rule().lr = 0.03;
  opt.step(), same_rates.step();
  CHECK(x.value == y.value);

  same_rates.matrix_rule().lr = -1;
  CHECK_THROWS_WITH_AS(same_rates.step(), "group 0: muon: lr must be finite and at least 0, is -1",
                       std::invalid_argument);
  CHECK(x.value == y.value);
  CHECK_THROWS_AS(same_rates.matrix_rule(1), std::invalid_argument);
  CHECK_THROWS_WITH_AS((ds::optimizer{z.params, ds::adamw{}, ds::matrices{ds::muon{.momentum = 1}}}),
                       "muon: momentum must be in [0, 1), is 1", std::invalid_argument);

  ds::optimizer resumed{z.params, ds::adamw{.lr = 0.01}, ds::matrices{ds::muon{.lr = 0.03}}};
  z.value = x.value;
  for (auto const& name : {"w1", "w3"}) resumed.set_matrix_state<0>(name, opt.matrix_state<0>(name));
  for (auto const& name : {"w0", "w2"})
    resumed.set_state<0>(name, opt.state<0>(name)), resumed.set_state<1>(name, opt.state<1>(name));
  resumed.set_step(1);
  x.set_gradients(2), z.set_gradients(2);
  opt.step(), resumed.step();
  CHECK(x.value == z.value);
  CHECK_THROWS_AS(resumed.set_matrix_state<0>("w0", opt.matrix_state<0>("w1")), std::invalid_argument);
}

TEST_CASE("scratch and memory of each rule take the bytes that docs/optimizers/matrices.md states") {
  std::int64_t const r = 128, c = 64, n = r;
  model<float> x({{r, c, 0}});
  auto const bytes = [&](auto const& rule, std::string const& name) {
    std::int64_t found = 0;
    for (auto const& b : ds::optimizer{x.params, ds::sgd{}, ds::matrices{rule}}.memory().buffers)
      if (b.name == "matrices: " + name + " (float)") found = b.bytes;
    return found;
  };
  CHECK(bytes(ds::muon{}, "scratch") == 4 * (2 * r * c + 4 * c * c));
  CHECK(bytes(ds::adafactor{}, "scratch") == 8 * r * c);
  CHECK(bytes(ds::sm3{}, "scratch") == 4 * (r * c + r + c));
  CHECK(bytes(ds::shampoo{}, "scratch") == 4 * (2 * r * c + 5 * n * n));
  CHECK(bytes(ds::soap{}, "scratch") == 4 * (4 * r * c + 3 * n * n + 66 * n));
  CHECK(bytes(ds::muon{.adaptive = true}, "scratch") == 4 * (3 * r * c + 4 * c * c));
  CHECK(bytes(ds::muon{}, "memory") == 0);
  CHECK(bytes(ds::muon{.normalize_rows = true}, "memory") == 4 * r);
  CHECK(bytes(ds::adafactor{}, "memory") == 4 * (r + c));
  CHECK(bytes(ds::sm3{}, "memory") == 4 * (r + c));
  CHECK(bytes(ds::shampoo{}, "memory") == 8 * (r * r + c * c));
  CHECK(bytes(ds::kl_shampoo{}, "memory") == 8 * (r * r + c * c) + 4 * 64 + 4 * (r + c));
  CHECK(bytes(ds::kl_shampoo{.adam = true}, "memory") == bytes(ds::kl_shampoo{}, "memory") + 4 * r * c);
  CHECK(bytes(ds::kl_shampoo{}, "scratch") == bytes(ds::soap{}, "scratch"));
  CHECK(bytes(ds::soap{}, "memory") == 8 * (r * r + c * c) + 4 * r * c + 4 * 64);  // two flags, in units of 64 elements
}

TEST_CASE("neither rule's state is allocated for the other's tensors") {
  model<float> x({{1024, 1, 0}, {64, 128, 0}});
  auto const bytes = [](auto const& m, std::string const& name) {
    for (auto const& b : m.buffers)
      if (b.name == name) return b.bytes;
    return std::int64_t(-1);
  };
  ds::optimizer opt{x.params, ds::adamw{}, ds::matrices{ds::muon{}}};
  auto const m = opt.memory();
  CHECK(bytes(m, "state m (float)") == 4 * 1024);
  CHECK(bytes(m, "state v (float)") == 4 * 1024);
  CHECK(bytes(m, "matrices: state m (float)") == 4 * 64 * 128);
  CHECK(bytes(m, "matrices: scratch (float)") == 4 * (2 * 64 * 128 + 4 * 64 * 64));
  CHECK(m.bytes == 4 * (2 * 1024 + 3 * 64 * 128 + 4 * 64 * 64));
  CHECK(decltype(opt)::memory(x.params, ds::adamw{}, ds::matrices{ds::muon{}}).bytes == m.bytes);
  CHECK(opt.state<0>("w0").size() == 1024);
  CHECK(opt.state<0>("w1").empty());
  CHECK(opt.matrix_state<0>("w0").empty());

  ds::optimizer factored{x.params, ds::adafactor{}, ds::matrices{ds::adafactor{}}};
  CHECK(bytes(factored.memory(), "state v (float)") == 4 * 1024);
  CHECK(bytes(factored.memory(), "state m (float)") == -1);
  CHECK(bytes(factored.memory(), "matrices: memory (float)") == 4 * (64 + 128));
  CHECK(factored.matrix_state<1>("w1").size() == 64);
  CHECK(factored.matrix_state<2>("w1").size() == 128);
  CHECK(factored.matrix_state<0>("w1").empty());
  factored.matrix_rule().momentum = 0.9;
  CHECK_THROWS_WITH_AS(factored.step(),
                       "group 0: the matrix rule needs the state 'm', which it did not need at construction, so it "
                       "was not allocated", std::invalid_argument);
}

TEST_CASE("several types and half gradients with a loss scale") {
  std::vector<float> a(12, 0.5f), ga(12), v(5, 0.5f), gv(5);
  std::vector<ds::half> b(12, ds::half(0.5f)), gb(12);
  for (std::size_t i = 0; i < 12; ++i) ga[i] = float(int(i * i % 7)) - 3, gb[i] = ds::half(ga[i] * 4);
  for (float& g : ga) g *= 4;
  ds::parameters<ds::mixed<float, ds::half>, ds::mixed<float, ds::half>> params;
  params.add("a", a.data(), ga.data(), ds::shape{3, 4});
  params.add("b", b.data(), gb.data(), ds::shape{3, 4});
  params.add("v", v.data(), gv.data(), 5);
  ds::optimizer opt{params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::master<float>{},
                    ds::static_loss_scale{.scale = 4}};
  opt.step();
  CHECK(same(opt.master("a"), opt.master("b")));
  CHECK(a != std::vector<float>(12, 0.5f));
}

TEST_CASE("what a schedule of the matrix rule throws leaves vectors and matrices as they were") {
  static bool throws = false;
  struct own_rate {
    double operator()(std::int64_t) const { return throws ? throw std::runtime_error("no rate") : 0.1; }
  };
  std::vector<double> w(12, 1), g(12, 1), v(5, 1), gv(5, 1);
  ds::parameters<double> params;
  params.add("v", v.data(), gv.data(), 5);
  params.add("w", w.data(), g.data(), ds::shape{3, 4});
  ds::optimizer opt{params, ds::sgd{}, ds::matrices{ds::muon{}}, ds::vary<&ds::muon::lr>(own_rate{}),
                    ds::accumulate{2}};
  throws = true;
  opt.step();
  for (int n = 0; n < 2; ++n) CHECK_THROWS_WITH_AS(opt.step(), "no rate", std::runtime_error);
  CHECK(v == std::vector<double>(5, 1));
  CHECK(w == std::vector<double>(12, 1));
  CHECK(opt.report().step == 0);
  throws = false;
  opt.step();
  CHECK(opt.report().step == 1);
  CHECK(v[0] != 1);
  CHECK(w[0] != 1);
}

TEST_CASE("long matrices with a side of more than a block of rows follow Muon's formula, too") {
  for (auto const& [rows, columns] : {std::pair{131, 200}, {200, 131}}) {
    model<double> x({{rows, columns, 0}});
    auto const start = x.value[0];
    matrix const d =
        orthogonalised({x.gradient[0].begin(), x.gradient[0].end()}, std::size_t(rows), std::size_t(columns));
    ds::optimizer opt{x.params, ds::adamw{.lr = 0.01}, ds::matrices{ds::muon{.lr = 1, .weight_decay = 0}}};
    opt.step();
    double const scale = std::sqrt(std::max(1.0, double(rows) / double(columns)));
    double worst = 0;
    for (std::size_t i = 0; i < d.size(); ++i)
      worst = test::larger(worst, std::abs(start[i] - scale * d[i] - x.value[0][i]));
    CHECK(worst < 1e-10);
  }
}

TEST_CASE("in float, rounding errors of a matrix of low rank do not grow with the iterations") {
  auto const moved = []<class Value>(Value, ds::shape s, ds::operands precision = ds::operands::exact) {
    model<Value> x({{s.rows, s.columns, 0}});
    auto const start = x.value[0];
    for (std::size_t i = 0; i < x.gradient[0].size(); ++i) {
      auto const row = i / std::size_t(s.columns), column = i % std::size_t(s.columns);
      x.gradient[0][i] = Value(std::sin(double(row + 1)) * std::cos(double(column)) + 1e-6 * std::sin(double(i * i)));
    }
    ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{ds::muon{.lr = 1, .weight_decay = 0, .ns_steps = 10,
                                                                 .coefficients = ds::newton_schulz::deepseek_v4(),
                                                                 .precision = precision}}};
    opt.step();
    std::vector<double> all;
    for (std::size_t i = 0; i < start.size(); ++i) all.push_back(double(x.value[0][i]) - double(start[i]));
    return all;
  };
  for (ds::shape s : {ds::shape{6, 40}, ds::shape{40, 6}, ds::shape{6, 9}}) {
    auto const in_double = moved(0.0, s);
    for (auto precision : {ds::operands::exact, ds::operands::bf16}) {
      auto const in_float = moved(0.f, s, precision);
      double worst = 0;
      for (std::size_t i = 0; i < in_double.size(); ++i)
        worst = test::larger(worst, std::abs(in_double[i] - in_float[i]));
      INFO(s.rows, " x ", s.columns);
      CHECK(worst < 0.02);
    }
  }
}

TEST_CASE("each rule for matrices solves least squares with a known solution") {
  // 1/2 || A W - B ||^2 with B = A W0; the gradient is A' (A W - B)
  constexpr std::size_t n = 40, k = 5, c = 3;
  auto const solve = [&](auto rule, auto const&... policies) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    matrix A(n * k), W0(k * c), W(k * c), g(k * c);
    for (double& e : A) e = normal(random) / 6;
    for (double& e : W0) e = normal(random);
    matrix const B = product(A, W0, n, k, c), At = transposed(A, n, k);
    ds::parameters<double> params;
    params.add("W", W.data(), g.data(), ds::shape{k, c});
    ds::optimizer opt{params, ds::sgd{}, ds::matrices{rule}, policies...};
    for (int t = 0; t < 1500; ++t) {
      matrix r = product(A, W, n, k, c);
      for (std::size_t i = 0; i < r.size(); ++i) r[i] -= B[i];
      matrix const gradient = product(At, r, k, n, c);
      std::copy(gradient.begin(), gradient.end(), g.begin());
      opt.step();
    }
    double worst = 0;
    for (std::size_t i = 0; i < W.size(); ++i) worst = test::larger(worst, std::abs(W[i] - W0[i]));
    return worst;
  };
  ds::linear const down{0.05, 1e-5, 1500};
  CHECK(solve(ds::muon{.weight_decay = 0}, ds::vary<&ds::muon::lr>(down)) <= 0.01);
  CHECK(solve(ds::adafactor{.capped = false, .relative = false}, ds::vary<&ds::adafactor::lr>(down)) <= 0.01);
  CHECK(solve(ds::sm3{.lr = 0.3}) <= 0.01);
  CHECK(solve(ds::shampoo{.lr = 0.1}) <= 0.01);
  CHECK(solve(ds::shampoo{.lr = 0.1, .beta2 = 0.99, .graft = true, .every = 10}) <= 0.01);
  CHECK(solve(ds::soap{.weight_decay = 0}, ds::vary<&ds::soap::lr>(down)) <= 0.01);
}

TEST_CASE("shampoo finds its roots in every k-th update, and takes steps as long as the gradient with graft") {
  model<double> x(few), y(few);
  ds::optimizer always{x.params, ds::sgd{}, ds::matrices{ds::shampoo{.momentum = 0}}};
  ds::optimizer sometimes{y.params, ds::sgd{}, ds::matrices{ds::shampoo{.momentum = 0, .every = 3}}};
  for (int t = 1; t <= 4; ++t) {
    x.set_gradients(t), y.set_gradients(t);
    auto const before = sometimes.matrix_state<3>("w1");
    std::vector<double> const root(before.begin(), before.end());
    always.step(), sometimes.step();
    CHECK(same(sometimes.matrix_state<1>("w1"), always.matrix_state<1>("w1")));  // the statistics are up to date
    CHECK(same(sometimes.matrix_state<3>("w1"), root) == (t == 2 || t == 3));
    CHECK(same(sometimes.matrix_state<3>("w1"), always.matrix_state<3>("w1")) == (t == 1 || t == 4));
  }

  model<double> z(few);
  auto const start = z.value;
  ds::optimizer grafted{z.params, ds::sgd{}, ds::matrices{ds::shampoo{.lr = 1, .momentum = 0, .graft = true}}};
  grafted.step();
  double moved = 0, gradient = 0;
  for (std::size_t i = 0; i < start[1].size(); ++i) {
    moved += (z.value[1][i] - start[1][i]) * (z.value[1][i] - start[1][i]);
    gradient += z.gradient[1][i] * z.gradient[1][i];
  }
  CHECK(moved == doctest::Approx(gradient));
  CHECK(std::abs(z.value[1][0] - start[1][0] + z.gradient[1][0]) > 0.001);  // but in another direction

  ds::optimizer grows{y.params, ds::sgd{}, ds::matrices{ds::shampoo{.momentum = 0}}};
  grows.matrix_rule().momentum = 0.5;
  CHECK_THROWS_AS(grows.step(), std::invalid_argument);
}

namespace {

/// The largest element of q q' - I.
double not_orthonormal(auto const& q) {
  auto const n = std::size_t(std::lround(std::sqrt(double(q.size()))));
  matrix const copy(q.begin(), q.end()), square = product(copy, transposed(copy, n, n), n, n, n);
  double worst = 0;
  for (std::size_t i = 0; i < square.size(); ++i)
    worst = test::larger(worst, std::abs(square[i] - (i % (n + 1) == 0 ? 1 : 0)));
  return worst;
}
/// The largest off-diagonal element of q s q'.
double not_diagonal(auto const& q, auto const& s) {
  auto const n = std::size_t(std::lround(std::sqrt(double(q.size()))));
  matrix const Q(q.begin(), q.end()), S(s.begin(), s.end());
  matrix const d = product(product(Q, S, n, n, n), transposed(Q, n, n), n, n, n);
  double worst = 0;
  for (std::size_t i = 0; i < d.size(); ++i)
    if (i % (n + 1) != 0) worst = test::larger(worst, std::abs(d[i]));
  return worst;
}

}  // namespace

TEST_CASE("soap's first update finds eigenvectors alone, then its bases follow in every k-th") {
  model<double> x(few);
  auto const start = x.value;
  ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{ds::soap{.every = 3}}};
  for (int t = 1; t <= 8; ++t) {
    x.set_gradients(t);
    auto const part = opt.matrix_state<3>("w1");
    matrix const before(part.begin(), part.end());
    opt.step();
    if (t == 1) {
      CHECK(same(x.value[1], start[1]));
      CHECK(same(x.value[3], start[3]));
      for (auto const& w : {"w1", "w3"}) {
        CHECK(not_diagonal(opt.matrix_state<3>(w), opt.matrix_state<1>(w)) <= 1e-14);
        CHECK(not_diagonal(opt.matrix_state<4>(w), opt.matrix_state<2>(w)) <= 1e-14);
      }
    }
    if (t == 2) CHECK(x.value[1] != start[1]);
    CHECK(same(opt.matrix_state<3>("w1"), before) == (t != 1 && t != 4 && t != 7));
    for (auto const& w : {"w1", "w3"}) {
      CHECK(not_orthonormal(opt.matrix_state<3>(w)) <= 1e-14);
      CHECK(not_orthonormal(opt.matrix_state<4>(w)) <= 1e-14);
    }
  }
}

TEST_CASE("soap without bases is Adam one update later; a basis of one side alone needs less memory") {
  model<double> x(few), y(few), z(few);
  ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{ds::soap{.weight_decay = 0, .max_precondition_dim = 0}}};
  ds::optimizer adam{y.params, ds::adam{.lr = 3e-3, .beta1 = 0.95, .beta2 = 0.95, .eps = 1e-8}};
  ds::optimizer one{z.params, ds::sgd{}, ds::matrices{ds::soap{.max_precondition_dim = 3}}};
  for (int t = 1; t <= 20; ++t) {
    x.set_gradients(t), y.set_gradients(t), z.set_gradients(t);
    opt.step(), one.step();
    if (t > 1) adam.step();
    for (std::size_t i = 0; i < 12; ++i) CHECK(std::abs(x.value[1][i] - y.value[1][i]) <= 1e-8);
  }
  CHECK(one.matrix_state<1>("w1").size() == 9);
  CHECK(one.matrix_state<2>("w1").empty());
  CHECK(one.matrix_state<3>("w3").empty());
  CHECK(one.matrix_state<4>("w3").size() == 4);
}

namespace {

/// Orthonormal rows by Gram-Schmidt, twice: the transpose of Q of a QR factorization.
matrix orthonormal_rows(matrix x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    for (int again = 0; again < 2; ++again)
      for (std::size_t k = 0; k < i; ++k) {
        double s = 0;
        for (std::size_t j = 0; j < n; ++j) s += x[i * n + j] * x[k * n + j];
        for (std::size_t j = 0; j < n; ++j) x[i * n + j] -= s * x[k * n + j];
      }
    double length = 0;
    for (std::size_t j = 0; j < n; ++j) length += x[i * n + j] * x[i * n + j];
    for (std::size_t j = 0; j < n; ++j) x[i * n + j] /= std::sqrt(length);
  }
  return x;
}

/// KL-Shampoo and KL-SOAP from the formula, with the inverses as matrices. The rows of a basis are eigenvectors.
struct plain_kl {
  struct side {
    std::size_t n;
    matrix S, Q;
    std::vector<double> d;
    matrix inverse() const {
      matrix scaled = Q;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) scaled[i * n + j] /= d[i];
      return product(transposed(Q, n, n), scaled, n, n, n);
    }
  };
  ds::kl_shampoo k;
  std::size_t r, c;
  matrix p, m = matrix(r * c), v = matrix(r * c);
  side L{r, matrix(r * r), {}, {}}, R{c, matrix(c * c), {}, {}};

  void add(matrix const& rows, matrix const& columns) {
    double const b = k.shampoo_beta;
    for (std::size_t i = 0; i < r * r; ++i) L.S[i] = b * L.S[i] + (1 - b) / double(c) * rows[i];
    for (std::size_t i = 0; i < c * c; ++i) R.S[i] = b * R.S[i] + (1 - b) / double(r) * columns[i];
  }
  matrix turned(matrix const& x) const { return product(product(L.Q, x, r, r, c), transposed(R.Q, c, c), r, c, c); }
  /// Where the eigenvectors are not unique, they are those of `first`.
  void step(int t, matrix const& g, matrix const& first_left, matrix const& first_right) {
    matrix const g_t = transposed(g, r, c);
    if (t == 1) {
      add(product(g, g_t, r, c, r), product(g_t, g, c, r, c));
      L.Q = first_left, R.Q = first_right;
      L.d.assign(r, k.initial), R.d.assign(c, k.initial);
      return;
    }
    matrix const x = turned(g);
    for (std::size_t i = 0; i < r * c; ++i) {
      m[i] = k.beta1 * m[i] + (1 - k.beta1) * g[i];
      v[i] = k.beta2 * v[i] + (1 - k.beta2) * x[i] * x[i];
    }
    matrix u = turned(m);
    for (std::size_t i = 0; i < r * c; ++i) u[i] /= k.eps + std::sqrt(k.adam ? v[i] : L.d[i / c] * R.d[i % c]);
    u = product(product(transposed(L.Q, r, r), u, r, r, c), R.Q, r, c, c);
    for (std::size_t i = 0; i < r * c; ++i) {
      p[i] -= k.lr * u[i];
      p[i] -= k.lr * k.weight_decay * p[i];
    }
    add(product(product(g, R.inverse(), r, c, c), g_t, r, c, r),
        product(product(g_t, L.inverse(), c, r, r), g, c, r, c));
    std::vector<double> rows(r), columns(c);
    for (std::size_t i = 0; i < r * c; ++i) {
      rows[i / c] += x[i] * x[i] / R.d[i % c] / double(c);
      columns[i % c] += x[i] * x[i] / L.d[i / c] / double(r);
    }
    follow(L, rows, t), follow(R, columns, t);
  }
  void follow(side& s, std::vector<double> const& mean, int t) const {
    double const largest = std::max(10.0, std::min(double(s.n), 4000.0));
    for (std::size_t i = 0; i < s.n; ++i) {
      s.d[i] = k.shampoo_beta * s.d[i] + (1 - k.shampoo_beta) * mean[i];
      if (k.clamp) s.d[i] = std::max(s.d[i], 1 / (largest * largest));
    }
    if ((t - 1) % k.every == 0) s.Q = orthonormal_rows(product(s.Q, s.S, s.n, s.n, s.n), s.n);
  }
};

}  // namespace

TEST_CASE("kl_shampoo: 100 steps of tall, wide and square matrices by the authors' formula; gradients follow p") {
  std::vector<tensor_shape> const shapes{{9, 2, 0}, {2, 11, 0}, {6, 6, 0}, {12, 3, 0}};
  auto const copy = [](auto part) { return matrix(part.begin(), part.end()); };
  ds::kl_shampoo const few_steps{
      .lr = 0.01, .beta2 = 0.9, .shampoo_beta = 0.8, .eps = 1e-3, .initial = 0.5, .every = 7};
  for (bool adam : {false, true})
    for (ds::kl_shampoo rule : {ds::kl_shampoo{.lr = 0.02}, few_steps}) {
      rule.adam = adam;
      model<double> x(shapes);
      ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{rule}};
      std::vector<plain_kl> plain;
      for (std::size_t k = 0; k < shapes.size(); ++k)
        plain.push_back({rule, std::size_t(shapes[k].rows), std::size_t(shapes[k].columns), x.value[k]});
      double worst = 0, way = 0;
      for (int t = 1; t <= 100; ++t) {
        x.set_gradients(t, 0.5);
        std::vector<matrix> g(shapes.size());
        for (std::size_t k = 0; k < shapes.size(); ++k) {
          std::size_t const n = x.value[k].size();
          for (std::size_t i = 0; i < n; ++i) {
            auto const of = [&](auto const& p) { return p[i] + (p[(i + 1) % n] + p[(i + n - 1) % n]) / 2; };
            g[k].push_back(x.gradient[k][i] + of(plain[k].p));
            x.gradient[k][i] += of(x.value[k]);
          }
        }
        opt.step();
        for (std::size_t k = 0; k < shapes.size(); ++k) {
          std::string const w = "w" + std::to_string(k);
          matrix const left = copy(opt.matrix_state<3>(w)), right = copy(opt.matrix_state<4>(w));
          plain[k].step(t, g[k], left, right);
          if (t == 1) CHECK(not_diagonal(left, plain[k].L.S) + not_diagonal(right, plain[k].R.S) <= 1e-14);
          matrix const L = copy(opt.matrix_state<1>(w)), R = copy(opt.matrix_state<2>(w));
          for (std::size_t i = 0; i < L.size(); ++i) worst = test::larger(worst, std::abs(plain[k].L.S[i] - L[i]));
          for (std::size_t i = 0; i < R.size(); ++i) worst = test::larger(worst, std::abs(plain[k].R.S[i] - R[i]));
          for (std::size_t i = 0; i < x.value[k].size(); ++i) {
            worst = test::larger(worst, std::abs(plain[k].p[i] - x.value[k][i]));
            way = std::max(way, std::abs(x.value[k][i] - (double(int((i * 7 + k * 3) % 11) - 5) / 8)));
          }
        }
      }
      CAPTURE(adam);
      CAPTURE(rule.every);
      CHECK(worst <= 1e-11);
      CHECK(way > 0.1);
    }
}

TEST_CASE("kl_shampoo without bases is SGD with a mean of the gradient; the clamp is that of the side") {
  model<double> x(few), y({{16, 2, 0}});
  ds::optimizer opt{x.params, ds::sgd{},
                    ds::matrices{ds::kl_shampoo{.lr = 0.1, .weight_decay = 0, .max_precondition_dim = 0}}};
  matrix p(x.value[1].begin(), x.value[1].end()), m(12);
  for (int t = 1; t <= 5; ++t) {
    x.set_gradients(t);
    opt.step();
    for (std::size_t i = 0; t > 1 && i < 12; ++i) m[i] = 0.9 * m[i] + 0.1 * x.gradient[1][i], p[i] -= 0.1 * m[i];
    for (std::size_t i = 0; i < 12; ++i) CHECK(std::abs(x.value[1][i] - p[i]) <= 1e-8);
  }
  for (bool clamp : {false, true}) {
    model<double> z({{16, 2, 0}});
    ds::optimizer small{z.params, ds::sgd{}, ds::matrices{ds::kl_shampoo{.shampoo_beta = 0, .clamp = clamp}}};
    for (int t = 1; t <= 3; ++t) z.set_gradients(t, 1e-4f), small.step();
    double least_left = 1, least_right = 1;
    for (double d : small.matrix_state<7>("w0")) least_left = std::min(least_left, d);
    for (double d : small.matrix_state<8>("w0")) least_right = std::min(least_right, d);
    CHECK((least_left == doctest::Approx(1 / 256.)) == clamp);
    CHECK((least_right == doctest::Approx(1 / 100.)) == clamp);
  }
}

TEST_CASE("kl_shampoo, as soap, whose first updates were skipped finds eigenvectors in the next power of two") {
  for (int skipped : {1, 2}) {
    model<double> x(few);
    auto const start = x.value;
    ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{ds::kl_shampoo{}}, ds::skip_nonfinite{}};
    for (int t = 1; t <= 4; ++t) {
      x.set_gradients(t);
      if (t <= skipped) x.gradient[0][0] = std::numeric_limits<double>::quiet_NaN();
      opt.step();
      INFO(skipped, " skipped, update ", t);
      bool const found = t >= (skipped == 1 ? 2 : 4);
      CHECK(opt.matrix_state<6>("w1")[0] == (found ? 1 : 0));
      CHECK((opt.matrix_state<7>("w1")[0] == 0.1) == (t == 2 * skipped));  // eigenvalues start there
      if (t <= skipped + 1) CHECK(x.value[1] == start[1]);
      else CHECK(x.value[1] != start[1]);
      if (t == 2 * skipped) CHECK(not_diagonal(opt.matrix_state<3>("w1"), opt.matrix_state<1>("w1")) <= 1e-14);
    }
  }
}

TEST_CASE("soap and kl_shampoo keep the columns of a null space, in float and in double") {
  constexpr std::size_t n = 32, columns = 8, rank = 5;
  auto const keeps = [&](auto rule, auto value) {
    model<decltype(value)> x({{n, columns, 0}});
    ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{rule}};
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    matrix left(n * rank), old;
    for (double& e : left) e = normal(random);
    double moved = 0;
    for (int t = 1; t <= 31; ++t) {
      matrix right(rank * columns);
      for (double& e : right) e = normal(random);
      matrix const g = product(left, right, n, rank, columns);
      for (std::size_t i = 0; i < g.size(); ++i) x.gradient[0][i] = decltype(value)(g[i]);
      opt.step();
      auto const part = opt.template matrix_state<3>("w0");
      matrix const q(part.begin(), part.end());
      if (!old.empty()) {  // each row of q beyond the rank is one of the old rows, wherever it was sorted
        matrix const cosines = product(q, transposed(old, n, n), n, n, n);
        for (std::size_t i = rank; i < n; ++i) {
          double nearest = 0;
          for (std::size_t j = 0; j < n; ++j) nearest = std::max(nearest, std::abs(cosines[i * n + j]));
          moved = test::larger(moved, 1 - nearest);
        }
      }
      old = q;
    }
    CHECK(moved <= 1e-6);
  };
  keeps(ds::soap{.every = 2}, 0.f), keeps(ds::soap{.every = 2}, 0.0);
  keeps(ds::kl_shampoo{.every = 2}, 0.f);
}

TEST_CASE("soap takes gradients of low rank, of zeros and with rows of zeros") {
  model<float> x({{5, 1, 0}, {40, 3, 0}, {3, 40, 0}, {6, 6, 0}, {4, 4, 0}});
  ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{ds::soap{.every = 2}}};
  for (int t = 1; t <= 40; ++t) {
    x.set_gradients(t);
    for (std::size_t i = 0; i < 36; ++i)
      if (i / 6 % 2 == 0) x.gradient[3][i] = 0;
    if (t < 20) std::fill(x.gradient[4].begin(), x.gradient[4].end(), 0.f);
    opt.step();
  }
  for (auto const& w : {"w1", "w2", "w3", "w4"}) {
    CHECK(not_orthonormal(opt.matrix_state<3>(w)) <= 1e-6);
    CHECK(not_orthonormal(opt.matrix_state<4>(w)) <= 1e-6);
  }
  for (auto const& w : x.value)
    for (float p : w) CHECK(std::isfinite(p));
}

namespace {

using pieces = std::map<std::string, std::vector<double>>;
template <class Optimizer> pieces pieces_of(Optimizer& opt) {
  pieces saved;
  opt.save([&](std::string const& name, auto piece) { saved[name] = {piece.begin(), piece.end()}; });
  return saved;
}
template <class Optimizer> void load_pieces(Optimizer& opt, pieces const& saved) {
  opt.load([&]<class T>(std::string const& name, std::span<T const>) {
    auto const& piece = saved.at(name);
    return std::vector<T>(piece.begin(), piece.end());
  });
}

}  // namespace

TEST_CASE("soap's state can be restored, piece by piece and as a whole") {
  model<double> x(few), y(few);
  ds::soap const rule{.every = 4, .max_precondition_dim = 4};
  ds::optimizer opt{x.params, ds::sgd{.momentum = 0.9}, ds::matrices{rule}, ds::skip_nonfinite{}};
  for (int t = 1; t <= 3; ++t) x.set_gradients(t), opt.step();  // the next one is not due
  ds::optimizer resumed{y.params, ds::sgd{.momentum = 0.9}, ds::matrices{rule}, ds::skip_nonfinite{}};
  y.value = x.value;
  SUBCASE("piece by piece") {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      for (auto const& name : {"w1", "w3"}) (resumed.set_matrix_state<I>(name, opt.matrix_state<I>(name)), ...);
    }(std::make_index_sequence<7>{});
    for (auto const& name : {"w0", "w2"}) resumed.set_state<0>(name, opt.state<0>(name));
    resumed.set_step(3);
  }
  SUBCASE("as a whole") {
    x.gradient[0][0] = std::numeric_limits<double>::infinity();
    opt.step();  // it is skipped, but counts for what is due
    auto const saved = pieces_of(opt);
    CHECK(saved.contains("w1.matrix.6"));
    CHECK(saved.contains("w1.matrix.m"));
    CHECK(saved.contains("w0.state.b"));
    CHECK_FALSE(saved.contains("w1.state.b"));
    CHECK(saved.at("matrix_updates") == std::vector<double>{4});
    std::string const by(saved.at("made_by").begin(), saved.at("made_by").end());
    CHECK(by == "sgd, state double, matrices soap, state double");
    load_pieces(resumed, saved);
  }
  for (int t = 4; t <= 8; ++t) {
    x.set_gradients(t), y.set_gradients(t);
    opt.step(), resumed.step();
    CHECK(x.value == y.value);
  }
}

TEST_CASE("kl_shampoo resumes from a saved state, eigenvalues included") {
  for (bool adam : {false, true}) {
    model<double> x(few), y(few);
    ds::kl_shampoo const rule{.adam = adam, .every = 4};
    ds::optimizer opt{x.params, ds::sgd{}, ds::matrices{rule}}, resumed{y.params, ds::sgd{}, ds::matrices{rule}};
    for (int t = 1; t <= 3; ++t) x.set_gradients(t), opt.step();
    auto const saved = pieces_of(opt);
    CHECK(saved.at("w1.matrix.7").size() == 3);
    CHECK(saved.at("w1.matrix.8").size() == 4);
    y.value = x.value;
    load_pieces(resumed, saved);
    for (int t = 4; t <= 8; ++t) {
      x.set_gradients(t), y.set_gradients(t);
      opt.step(), resumed.step();
      CHECK(x.value == y.value);
    }
  }
}

TEST_CASE("memory of a matrix rule whose bytes exceed 64 bits is refused") {
  ds::parameters<float> params;
  auto* const far = reinterpret_cast<float*>(std::int64_t(1) << 45);  // nothing is mapped there
  params.add("long", far, far + (std::int64_t(1) << 40), ds::shape{2147483647, 2});
  auto const says = [&](auto rule) {
    return test::message([&] { ds::memory(params, ds::sgd{}, ds::matrices{rule}); });
  };
  std::string const sentence = "matrices: a part of the rule's memory or scratch, with the parts before it, must be at "
                               "most 2^56 elements, is 4611686014132420609";
  CHECK(says(ds::shampoo{}) == sentence);
  CHECK(says(ds::soap{.max_precondition_dim = 2147483647}) == sentence);
  CHECK(says(ds::soap{}) == "");
}

TEST_CASE("the documentation's example") {
  std::vector<float> W(64 * 32, 0.1f), W_gradient(64 * 32, 0.5f), b(64), b_gradient(64, 0.5f);
  // snippet: matrices
  descent::parameters<float> params;
  params.add("W", W.data(), W_gradient.data(), descent::shape{64, 32});
  params.add("b", b.data(), b_gradient.data(), b.size());

  descent::optimizer opt{params, descent::adamw{.lr = 1e-3}, descent::matrices{descent::muon{.lr = 0.02}},
                         descent::clip_norm{1}};
  opt.step();
  opt.matrix_rule().lr = 0.01;  // from the next step on
  // end
  CHECK(opt.report().applied);
  CHECK(W[0] != 0.1f);
  CHECK(b[0] != 0);
}

TEST_CASE("the documentation's recipe for a transformer follows its schedules") {
  std::vector<float> qkv(3 * 2 * 8 * 16), d_qkv(qkv.size()), embedding(40), d_embedding(40);
  auto* const values = qkv.data();
  auto* const gradients = d_qkv.data();
  int const heads = 2;
  // snippet: recipe
  descent::parameters<float> params;
  params.add_stack("attention.q", values, gradients, heads, {8, 16});  // each head by itself
  params.add("attention.kv", values + 256, gradients + 256, descent::shape{32, 16});
  params.add("embedding", embedding.data(), d_embedding.data(), embedding.size());

  descent::muon const hidden{.weight_decay = 0.025,
                             .coefficients = descent::newton_schulz::polar_express(),
                             .precision = descent::operands::bf16,
                             .normalize_rows = true};
  descent::optimizer opt{
      params, descent::adamw{.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0}, descent::matrices{hidden},
      descent::learning_rate(descent::wsd{.peak = 3e-3, .stable = 1800, .decay = 1200}),
      descent::vary<&descent::muon::lr>(descent::polynomial{.from = 0.0375, .to = 0, .power = 1.2, .steps = 3000}),
      descent::vary<&descent::muon::momentum>(descent::linear{0.85, 0.95, 300}),
      descent::ema_nesterov{.lookahead = 0.3, .start = 300, .until = 2050},
      descent::ema{.decay = 0.993, .start = 2500}};
  // end
  for (std::size_t i = 0; i < qkv.size(); ++i) d_qkv[i] = float(std::sin(double(i * i)));
  opt.set_step(150);
  opt.step();
  double const mu = 0.85 + 0.1 * 150 / 300;
  CHECK(opt.matrix_state<0>("attention.q.1")[3] == doctest::Approx((1 - mu) * d_qkv[128 + 3]));
  double squares = 0;
  for (std::size_t i = 0; i < 128; ++i) squares += double(qkv[i]) * double(qkv[i]);
  double const rate = 0.0375 * std::pow(1 - 150. / 3000, 1.2);
  CHECK(std::sqrt(squares) == doctest::Approx(rate * std::sqrt(8)).epsilon(0.1));  // eight singular values near 1
}
