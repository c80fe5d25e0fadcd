// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Tensors of several types in one optimizer, and bundles of policies.
#include <descent/cost.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/policies/zero_grad.hpp>
#include <descent/presets/amp.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/problem.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace ds = descent;
using test::message, test::same_bits;

namespace {

using two = ds::mixed<ds::half, float>;

/// Weights in half, a normalisation layer's in float; sizes with tails and more than one chunk.
struct model {
  std::vector<ds::half> w = std::vector<ds::half>(5001), dw = std::vector<ds::half>(5001);
  std::vector<float> b = std::vector<float>(333), db = std::vector<float>(333);

  model() {
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = ds::half(1 + float(i % 7) / 8);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = 1 + float(i % 5) / 8;
    new_gradients(0);
  }
  void new_gradients(int t) {
    for (std::size_t i = 0; i < w.size(); ++i)
      dw[i] = ds::half(float(int(i * 37 + std::size_t(t) * 101) % 257 - 128) / 16);
    for (std::size_t i = 0; i < b.size(); ++i) db[i] = float(int(i * 41 + std::size_t(t) * 103) % 257 - 128) / 16;
  }
  ds::parameters<two> together() {
    ds::parameters<two> p;
    p.add("w", w.data(), dw.data(), w.size());
    p.add("b", b.data(), db.data(), b.size(), ds::group{1});
    return p;
  }
};

}  // namespace

TEST_CASE("an optimizer of two types equals one of each, where nothing is measured over both") {
  model x, y;
  ds::parameters<ds::half> weights;
  weights.add("w", y.w.data(), y.dw.data(), y.w.size());
  ds::parameters<float> norms;
  norms.add("b", y.b.data(), y.db.data(), y.b.size());
  ds::optimizer both{x.together(), ds::adamw{}, ds::master<float>{}, ds::ema{.decay = 0.5}, ds::lookahead{.k = 2}};
  ds::optimizer first{weights, ds::adamw{}, ds::master<float>{}, ds::ema{.decay = 0.5}, ds::lookahead{.k = 2}};
  ds::optimizer second{norms, ds::adamw{}, ds::ema{.decay = 0.5}, ds::lookahead{.k = 2}};
  for (int t = 1; t <= 5; ++t) {
    x.new_gradients(t);
    y.new_gradients(t);
    both.step(), first.step(), second.step();
  }
  CHECK(same_bits(x.w, y.w));
  CHECK(same_bits(x.b, y.b));
  auto const equal = [](auto a, auto b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
  CHECK(equal(both.master("w"), first.master("w")));
  CHECK(equal(both.average("w"), first.average("w")));
  CHECK(equal(both.average("b"), second.average("b")));
  CHECK(equal(both.state("b", "v"), second.state("b", "v")));
  CHECK(both.master("b").data() == x.b.data());  // a float value needs no float master
}

TEST_CASE("one norm and one decision for all types") {
  model x;
  ds::optimizer opt{x.together(), ds::sgd{.lr = 0.5}, ds::clip_norm{1}, ds::zero_grad{}};
  double squares = 0;
  for (auto g : x.dw) squares += double(__half2float(g)) * double(__half2float(g));
  for (auto g : x.db) squares += double(g) * double(g);
  opt.step();
  CHECK(opt.report().grad_norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
  for (auto g : x.dw) REQUIRE(__half2float(g) == 0);
  for (auto g : x.db) REQUIRE(g == 0);

  auto const w = x.w;
  auto const b = x.b;
  x.new_gradients(2);
  x.db[7] = std::numeric_limits<float>::quiet_NaN();
  opt.step();
  CHECK(same_bits(x.w, w));
  CHECK(same_bits(x.b, b));
  CHECK(opt.report().why == "the gradient of 'b' is not finite");
  auto const tensors = opt.diagnose();
  CHECK(tensors.at(0).finite);
  CHECK(!tensors.at(1).finite);
}

TEST_CASE("averages of several types are swapped in and out without changing a bit") {
  model x;
  ds::optimizer opt{x.together(), ds::adamw{.lr = 0.1}, ds::ema{.decay = 0.5}, ds::stochastic_rounding{}};
  opt.step();
  auto const w = x.w;
  auto const b = x.b;
  opt.swap_average();
  CHECK(!same_bits(x.w, w));
  CHECK(!same_bits(x.b, b));
  for (std::size_t i = 0; i < x.b.size(); ++i) REQUIRE(x.b[i] == opt.average("b")[i]);
  opt.swap_average();
  CHECK(same_bits(x.w, w));
  CHECK(same_bits(x.b, b));
}

TEST_CASE("bytes are the mean over the types, and memory says what is owned") {
  model x;
  ds::optimizer opt{x.together(), ds::adamw{}, ds::master<float>{}, ds::clip_norm{}};
  double const half = 2 + (2 + 2 + 8 + 16), single = 4 + (4 + 8 + 16);
  CHECK(opt.bytes_per_parameter() == doctest::Approx((5001 * half + 333 * single) / 5334));
  CHECK(opt.explain().find("value half and float, gradient half and float") != std::string::npos);
}

TEST_CASE("memory of one type must not overlap another's") {
  std::vector<float> x(100), g(100);
  ds::parameters<two> p;
  p.add("w", reinterpret_cast<ds::half*>(x.data()), reinterpret_cast<ds::half*>(g.data()), 101);
  p.add("b", x.data() + 50, g.data() + 60, 40);
  CHECK(message([&] { ds::optimizer{p, ds::sgd{}}; }) == "the value of 'w' overlaps the value of 'b' in memory");
}

TEST_CASE("a bundle is its policies, and one that is given by itself takes its place") {
  model x, y;
  ds::optimizer bundled{x.together(), ds::adamw{}, ds::amp::O2{}, ds::clip_norm{1}};
  ds::optimizer spelled{y.together(), ds::adamw{}, ds::clip_norm{1}, ds::dynamic_loss_scale{}, ds::master<float>{}};
  CHECK(bundled.loss_scale() == 65536);
  bundled.step(), spelled.step();
  CHECK(same_bits(x.w, y.w));
  CHECK(same_bits(x.b, y.b));
  ds::optimizer other{x.together(), ds::adamw{}, ds::amp::O2{}, ds::static_loss_scale{128}};
  CHECK(other.loss_scale() == 128);
  ds::optimizer before{x.together(), ds::adamw{}, ds::dynamic_loss_scale{.init = 4}, ds::amp::O1{}};
  CHECK(before.loss_scale() == 4);
  CHECK(ds::optimizer{x.together(), ds::adamw{}, ds::amp::O3{}}.loss_scale() == 1);
  static_assert(ds::bytes_per_parameter<ds::half, ds::half, ds::adamw, ds::amp::O2, ds::clip_norm, ds::ema,
                                        ds::zero_grad>() == 40);
}
