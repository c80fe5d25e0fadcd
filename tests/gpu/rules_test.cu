// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Rules without a policy, in the types of mixed precision and in chains: the device equals the host. families_test.cu
// tests every rule in float.
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/optimizer.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/noise.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <tuple>
#include <utility>

namespace {

namespace ds = descent;
using ds::bfloat16, ds::half, ds::master, ds::states;

/// Two chunks and a tail, an unaligned tensor, an empty one, two groups.
std::vector<test::tensor> const model{{4096 + 203}, {3, 1}, {0}, {117, 0, 1, 3}, {64, 1}};

template <class Value, class Gradient = Value, class Rule, class... Ps>
void same_on_device(Rule const& rule, Ps... policies) {
  test::same_on_device<Value, Gradient>(model, rule, policies...);
}

__global__ void fuse(float a, float b, float c, float* out) { *out = a * b + c; }

}  // namespace

TEST_CASE("the device contracts products and sums exactly when these tests were told so") {
  test::stream s;
  test::device_vector<float> out{{0}, s};
  float const a = 1 + 0x1p-12f;
  fuse<<<1, 1, 0, s>>>(a, a, -(1 + 0x1p-11f), out.data());
  CHECK((out.get(s)[0] != 0) == test::contracted);
}

// ---- types of values, gradients, states and masters ----------------------------------------------------------------

namespace {

using types = std::tuple<double, float, half, bfloat16>;
using masters = std::tuple<ds::single, master<float>, master<double>, master<half>>;
template <int I> using type = std::tuple_element_t<I, types>;

/// Twice j in the field of four elements, whose sums are exclusive ors.
constexpr int twice(int j) { return 2 * j ^ (j > 1 ? 7 : 0); }

/// Value I, gradient J. With these types of AdamW's states and the master, the sixteen cases pair every type of one of
/// the five with every type of another.
template <int I, int J> void mix() {
  CAPTURE(I);
  CAPTURE(J);
  using stored = states<type<I ^ J>, type<I ^ twice(J)>>;
  same_on_device<type<I>, type<J>>(ds::adamw{.lr = 0.05}, stored{},
                                   std::tuple_element_t<I ^ twice(twice(J)), masters>{});
}
template <int... IJ> void mix_all(std::integer_sequence<int, IJ...>) { (mix<IJ / 4, IJ % 4>(), ...); }

}  // namespace

TEST_CASE("values, gradients, states and masters of any type: the device equals the host") {
  mix_all(std::make_integer_sequence<int, 16>{});
}
TEST_CASE("states in half that overflow are saturated: the device equals the host, and values stay finite") {
  auto both = test::twins_of<half>(model, ds::adamw{.lr = 0.05}, states<half>{});
  for (std::uint64_t t = 1; t <= 3; ++t) {
    both.x.new_gradients(t);
    both.x.each([&](std::size_t k, std::int64_t i) {
      half& g = both.x.gradient_of(k, i);
      g = half(60000 * test::number(g));
    });
    both.step();
  }
  both.expect_same();
  int saturated = 0;
  for (half const v : both.host.state<1>("w0")) saturated += test::number(v) == 65504;
  CHECK(saturated > 0);
  both.x.each([&](std::size_t k, std::int64_t i) { CHECK(ds::is_finite(test::number(both.x.value_of(k, i)))); });
}
TEST_CASE("lamb in half with a float master and bfloat16 states: the device equals the host") {
  same_on_device<half>(ds::lamb{.weight_decay = 0.1}, master<float>{}, states<bfloat16>{});
}
TEST_CASE("dog in bfloat16: the device equals the host") {
  same_on_device<bfloat16>(ds::dog{.reps = 0.1}, states<bfloat16>{});
}
TEST_CASE("lion in bfloat16 with a half state: the device equals the host") {
  same_on_device<bfloat16, half>(ds::lion{.lr = 0.05}, states<half>{});
}
TEST_CASE("sgd in half, with and without momentum: the device equals the host") {
  same_on_device<half>(ds::sgd{.lr = 0.1, .momentum = 0.9}, states<half>{});
  same_on_device<half>(ds::sgd{.lr = 0.1}, states<half>{});  // stores nothing
}
TEST_CASE("rmsprop in double with three states of three types: the device equals the host") {
  same_on_device<double, float>(ds::rmsprop{.momentum = 0.9, .centered = true}, states<float, half, bfloat16>{});
  same_on_device<double, float>(ds::rmsprop{.weight_decay = 0.1}, states<float, half, bfloat16>{});
}

// ---- rules of rules ------------------------------------------------------------------------------------------------

TEST_CASE("layerwise around a rule with memory: the device equals the host") {
  same_on_device<float>(ds::layerwise<ds::heavy_ball>{.rule = {.nesterov = true}, .weight_decay = 0.1});
}

TEST_CASE("a chain with noise has the bits of the host, and is one kernel, as its rule") {
  ds::gradient_noise const noise{.eta = 0.3, .gamma = 0, .seed = 11};
  SUBCASE("in float") {
    auto both = test::twins_of<float>(model, ds::chain{ds::clip_value{0.5}, noise, ds::l2{0.125}, ds::adamw{}});
    both.steps(1);
    both.each([](auto& opt) { opt.group(1).lr *= 0.5; });
    both.steps(2);
    both.expect_same();
    CHECK(test::launches([&] { both.device.step(); }) == 2);
  }
  SUBCASE("in bfloat16, rounded at random") {
    same_on_device<bfloat16>(ds::chain{noise, ds::sgd{.lr = 0.125, .momentum = 0.5}}, ds::stochastic_rounding{11});
  }
  SUBCASE("with sums over tensors: one kernel more") {
    auto both = test::twins_of<float>(model, ds::chain{ds::clip_value{1}, ds::l2{0.1}, ds::lamb{}});
    both.steps(3);
    both.expect_same();
    CHECK(test::launches([&] { both.device.step(); }) == 3);
  }
}
