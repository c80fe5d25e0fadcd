// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/cost.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/gradient_ahead.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/maximize.hpp>
#include <descent/policies/sam.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

/// sam and maximize.

namespace ds = descent;
using ds::half, ds::bfloat16;

namespace {

/// f(x) = sum a x^2 / 2 over two tensors, with an optimizer.
template <class Value, class Gradient = Value> struct bowl {
  std::vector<Value> x{ds::narrow<Value>(1.), ds::narrow<Value>(-2.), ds::narrow<Value>(0.5)}, y{ds::narrow<Value>(3.)};
  std::vector<Gradient> gx = std::vector<Gradient>(3), gy = std::vector<Gradient>(1);

  ds::parameters<Value, Gradient> list() {
    ds::parameters<Value, Gradient> all;
    all.add("x", x.data(), gx.data(), 3);
    all.add("y", y.data(), gy.data(), 1, ds::group{1});
    return all;
  }
  void backward(double scale = 1) {
    for (std::size_t i = 0; i < 3; ++i) gx[i] = ds::narrow<Gradient>(scale * double(i + 1) * ds::widen<double>(x[i]));
    gy[0] = ds::narrow<Gradient>(scale * ds::widen<double>(y[0]) / 4);
  }
};

}  // namespace

TEST_CASE("sam: the formula, with the norm over all groups") {
  bowl<double> b;
  ds::optimizer opt{b.list(), ds::sgd{.lr = 0.1}, ds::sam{.rho = 0.5}};
  std::vector<double> p{1, -2, 0.5, 3};
  std::vector<double> const a{1, 2, 3, 0.25};
  for (int t = 0; t < 10; ++t) {
    b.backward();
    opt.ascend();
    b.backward();
    opt.step();
    double norm = 0;
    for (std::size_t i = 0; i < 4; ++i) norm += a[i] * p[i] * a[i] * p[i];
    norm = std::sqrt(norm);
    for (std::size_t i = 0; i < 4; ++i) p[i] -= 0.1 * a[i] * (p[i] + 0.5 * a[i] * p[i] / norm);
    for (std::size_t i = 0; i < 3; ++i) CHECK(b.x[i] == doctest::Approx(p[i]).epsilon(1e-14));
    CHECK(b.y[0] == doctest::Approx(p[3]).epsilon(1e-14));
  }
}

TEST_CASE("sam: step() restores the values bit for bit, in any storage type") {
  auto const returns = []<class Value, class... Ps>(Value, Ps... policies) {
    bowl<Value> b;
    auto const x = b.x, y = b.y;
    ds::optimizer opt{b.list(), ds::sgd{.lr = 0}, ds::sam{.rho = 0.7}, policies...};
    b.backward(64);
    opt.ascend();
    CHECK(ds::widen<double>(b.x[0]) > ds::widen<double>(x[0]));
    CHECK(ds::widen<double>(b.x[1]) < ds::widen<double>(x[1]));
    CHECK(ds::widen<double>(b.y[0]) > ds::widen<double>(y[0]));
    opt.step();
    for (std::size_t i = 0; i < 3; ++i) CHECK(ds::widen<double>(b.x[i]) == ds::widen<double>(x[i]));
    CHECK(ds::widen<double>(b.y[0]) == ds::widen<double>(y[0]));
  };
  returns(1.0);
  returns(1.f);
  returns(half{});
  returns(half{}, ds::master<float>{}, ds::dynamic_loss_scale{.init = 64});
  returns(bfloat16{}, ds::master_remainder{});
  returns(1.f, ds::clip_norm{1});
}

TEST_CASE("sam: the ascent does not depend on the loss scale") {
  bowl<float> plain, scaled;
  ds::optimizer a{plain.list(), ds::adamw{}, ds::sam{}, ds::static_loss_scale{1}};
  ds::optimizer b{scaled.list(), ds::adamw{}, ds::sam{}, ds::static_loss_scale{1024}};
  for (int t = 0; t < 5; ++t) {
    plain.backward(), scaled.backward(1024);
    a.ascend(), b.ascend();
    CHECK(plain.x == scaled.x);
    plain.backward(), scaled.backward(1024);
    a.step(), b.step();
    CHECK(plain.x == scaled.x);
    CHECK(plain.y == scaled.y);
  }
}

TEST_CASE("sam: frozen groups do not move, nor does anything when a gradient is not finite or all are zero") {
  bowl<float> b;
  ds::optimizer opt{b.list(), ds::sgd{.lr = 0.1}, ds::sam{.rho = 1}, ds::skip_nonfinite{}};
  auto const x = b.x, y = b.y;
  opt.freeze(1);
  b.backward();
  b.gy[0] = std::numeric_limits<float>::infinity();
  opt.ascend();
  CHECK(b.y == y);
  CHECK(b.x[2] == doctest::Approx(0.5 + 1.5 / std::sqrt(1 + 16 + 2.25)));  // the norm is of what is not frozen
  b.backward();
  opt.step();
  CHECK(b.y == y);
  CHECK(b.x != x);
  opt.freeze(1, false);
  auto const before = b.x;
  b.gx[1] = std::numeric_limits<float>::quiet_NaN();
  opt.ascend();
  CHECK(b.x == before);
  opt.step();
  CHECK(b.x == before);
  CHECK(opt.report().skipped == 1);
  b.gx = {0, 0, 0};
  b.gy = {0};
  opt.ascend();
  CHECK(b.x == before);
}

TEST_CASE("sam: an error for calls out of order names the right order") {
  bowl<float> b;
  ds::optimizer opt{b.list(), ds::sgd{}, ds::sam{}, ds::ema{}};
  opt.ascend();
  CHECK_THROWS_WITH_AS(opt.ascend(), "ascend() twice; the order is backward, ascend(), backward, step()",
                       std::logic_error);
  CHECK_THROWS_WITH_AS(opt.swap_average(), "swap_average() after ascend(): the values are elsewhere until step()",
                       std::logic_error);
  CHECK_THROWS_WITH_AS(opt.reload_values(), "reload_values() after ascend(): the values are elsewhere until step()",
                       std::logic_error);
  opt.step();
  opt.swap_average();
  CHECK_THROWS_AS(opt.ascend(), std::logic_error);
  CHECK_THROWS_WITH_AS(ds::optimizer(b.list(), ds::sgd{}, ds::sam{.rho = -1}),
                       "sam: rho must be finite and at least 0, is -1", std::invalid_argument);
}

TEST_CASE("sam: memory() includes the saved values") {
  bowl<half> b;
  auto const m = ds::memory(b.list(), ds::sgd{}, ds::sam{});
  REQUIRE(m.buffers.size() == 1);
  CHECK(m.buffers[0].name == "values kept by sam");
  CHECK(m.buffers[0].bytes == 2 * 128);
}

TEST_CASE("maximize: a step along the negative gradient, also clipped; rules/sixteen_bits_test.cpp tests every rule") {
  auto const mirrored = [](auto rule, auto... policies) {
    bowl<float> up, down;
    ds::optimizer a{up.list(), rule, ds::maximize{}, policies...};
    ds::optimizer b{down.list(), rule, policies...};
    for (int t = 0; t < 5; ++t) {
      up.backward(), down.backward(-1);
      a.step(), b.step();
      CHECK(up.x == down.x);
      CHECK(up.y == down.y);
    }
  };
  mirrored(ds::dog{.reps = 0.1, .weight_decay = 0.1}, ds::clip_norm{0.5});
  mirrored(ds::adamw{.lr = 0.1}, ds::clip<ds::norm::l2, ds::scope::tensor>{0.5}, ds::clip_value{0.2});
}

TEST_CASE("maximize with sam: the first step of the two goes downhill") {
  bowl<float> b;
  ds::optimizer opt{b.list(), ds::sgd{}, ds::sam{.rho = 1}, ds::maximize{}};
  b.backward();
  opt.ascend();
  CHECK(b.x[0] < 1);
}

TEST_CASE("sam: an empty tensor, one element, misaligned memory, several types") {
  alignas(16) float x[16] = {1, 2, 3, 4, 5}, g[16] = {0, 3, 4, 0, 0};
  ds::parameters<float> list;
  list.add("empty", static_cast<float*>(nullptr), static_cast<float*>(nullptr), 0);
  list.add("one", x + 1, g + 1, 1);
  list.add("two", x + 2, g + 2, 2);
  ds::optimizer opt{list, ds::sgd{.lr = 0}, ds::sam{.rho = 5}};
  opt.ascend();
  CHECK(x[1] == 5);
  CHECK(x[2] == 7);
  CHECK(x[0] == 1);
  CHECK(x[4] == 5);
  opt.step();
  CHECK(x[1] == 2);
  CHECK(x[2] == 3);

  half h[3] = {ds::narrow<half>(1.f)}, hg[3] = {ds::narrow<half>(4.f)};
  float f[1] = {1}, fg[1] = {3};
  ds::parameters<ds::mixed<half, float>> both;
  both.add("h", h, hg, 3);
  both.add("f", f, fg, 1);
  ds::optimizer mixed{both, ds::sgd{.lr = 0}, ds::sam{.rho = 5}, ds::master<float>{}};
  mixed.ascend();
  CHECK(ds::widen<float>(h[0]) == 5);
  CHECK(f[0] == 4);
  mixed.step();
  CHECK(ds::widen<float>(h[0]) == 1);
  CHECK(f[0] == 1);

  ds::parameters<float> nothing;
  ds::optimizer none{nothing, ds::sgd{}, ds::sam{}};
  none.ascend();
  none.step();
  CHECK(none.report().step == 1);
}

TEST_CASE("gradient_ahead: the literal form of Nesterov's momentum, beside the shifted one") {
  auto const holds = [](auto rule, auto const& literal_of, auto... policies) {
    bowl<double> literal, shifted;
    ds::optimizer ahead{literal.list(), rule, ds::gradient_ahead{}, policies...};
    rule.nesterov = true;
    ds::optimizer usual{shifted.list(), rule};
    for (int t = 0; t < 30; ++t) {
      ahead.move_ahead();
      for (std::size_t i = 0; i < 3; ++i) CHECK(literal.x[i] == doctest::Approx(shifted.x[i]).epsilon(1e-13));
      literal.backward();
      shifted.backward();
      ahead.step();
      usual.step();
      for (std::size_t i = 0; i < 3; ++i) {
        double const b = usual.state("x", 0)[i];
        CHECK(literal.x[i] == doctest::Approx(shifted.x[i] + literal_of(rule) * b).epsilon(1e-13));
      }
    }
  };
  holds(ds::heavy_ball{.lr = 0.1, .momentum = 0.8}, [](auto const& r) { return r.momentum; });
  holds(ds::sgd{.lr = 0.1, .momentum = 0.8}, [](auto const& r) { return r.lr * r.momentum; });
}

TEST_CASE("gradient_ahead: masters look ahead, frozen groups stay, fields follow their schedule") {
  bowl<bfloat16, float> b;
  b.x[0] = ds::narrow<bfloat16>(1.), b.y[0] = ds::narrow<bfloat16>(3.);
  ds::optimizer opt{b.list(), ds::heavy_ball{.lr = 0.26}, ds::gradient_ahead{}, ds::master<float>{},
                    ds::vary<&ds::heavy_ball::momentum>(ds::linear{0.5, 1.0, 2})};
  b.backward();
  opt.step();
  opt.freeze(1);
  auto const y = b.y[0];
  auto const x = b.x;
  double const ahead = opt.master("x")[1] - 0.75 * opt.state("x", 0)[1];  // momentum after one step is 0.75
  opt.move_ahead();
  CHECK(ds::widen<double>(b.x[1]) == ds::widen<double>(ds::narrow<bfloat16>(float(ahead))));
  CHECK(ds::widen<double>(b.x[1]) != ds::widen<double>(x[1]));
  CHECK(ds::widen<double>(b.y[0]) == ds::widen<double>(y));
  CHECK_THROWS_WITH_AS(opt.move_ahead(), "move_ahead() twice; the order is move_ahead(), backward, step()",
                       std::logic_error);
  CHECK_THROWS_WITH_AS(opt.reload_values(), "reload_values() after move_ahead(): the values are elsewhere until step()",
                       std::logic_error);
  b.backward();
  b.gx[0] = std::numeric_limits<float>::quiet_NaN();
  ds::optimizer skips{b.list(), ds::sgd{.momentum = 0.9}, ds::gradient_ahead{}, ds::skip_nonfinite{}};
  auto const before = b.x;
  skips.move_ahead();
  skips.step();
  CHECK_FALSE(skips.report().applied);
  for (std::size_t i = 0; i < 3; ++i) CHECK(ds::widen<double>(b.x[i]) == ds::widen<double>(before[i]));
}
