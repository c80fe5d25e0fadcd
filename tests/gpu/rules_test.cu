// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Rules without a policy, in the types of mixed precision, with sums beside a clipped norm, and in chains: the device
// equals the host. Every rule in float is in families_test.cu.
#include "support.cuh"

#include <descent/chain.hpp>
#include <descent/clip.hpp>
#include <descent/cuda.cuh>
#include <descent/noise.hpp>
#include <descent/optimizer.hpp>
#include <descent/rounding.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/storage.hpp>
#include <descent/transforms.hpp>

namespace {

namespace ds = descent;
using ds::bfloat16, ds::half, ds::master, ds::states, test::same_on_device;

__global__ void fuse(float a, float b, float c, float* out) { *out = a * b + c; }

/// Two chunks and a tail, a tensor that is not aligned, an empty one, two groups.
std::vector<test::tensor> const model{{4096 + 203}, {3, 1}, {0}, {117, 0, 1, 3}, {64, 1}};

/// Three steps, with another rate of one group in the second.
template <class Value, class Rule, class... Ps> void same_with_groups(Rule const& rule, Ps... policies) {
  test::stream s;
  test::tensors<Value> x{model, s};
  test::twins both{x, rule, policies...};
  for (int t = 1; t <= 3; ++t) {
    x.new_gradients(std::uint64_t(t));
    if (t == 2) both.host.group(1).lr = both.device.group(1).lr = 0.5 * rule.lr;
    both.step();
  }
  both.expect_same();
  test::expect_same(both.host.report().grad_norm, both.device.report().grad_norm, "norm");
}

/// Kernels of a step.
template <class Rule> std::size_t launches(Rule const& rule) {
  test::stream s;
  test::tensors<float> x{{{100}}, s};
  ds::optimizer opt{x.on_device(), rule, ds::cuda{s}};
  opt.step();
  s.wait();
  return test::graph(s, [&] { opt.step(); }).nodes;
}

}  // namespace

TEST_CASE("the device contracts products and sums exactly when these tests were told so") {
  test::stream s;
  test::device_vector<float> out{{0}, s};
  float const a = 1 + 0x1p-12f;
  fuse<<<1, 1, 0, s>>>(a, a, -(1 + 0x1p-11f), out.data());
  CHECK((out.get(s)[0] != 0) == test::contracted);
}

TEST_CASE("lamb in half with a float master and bfloat16 states: the device equals the host") {
  same_on_device<half, half>(ds::lamb{.weight_decay = 0.1}, master<float>{}, states<bfloat16>{});
}
TEST_CASE("dog in bfloat16: the device equals the host") {
  same_on_device<bfloat16, bfloat16>(ds::dog{.reps = 0.1}, states<bfloat16>{});
}
TEST_CASE("lion in bfloat16 with a half state: the device equals the host") {
  same_on_device<bfloat16, half>(ds::lion{.lr = 0.05}, states<half>{});
}
TEST_CASE("sgd in half, with and without momentum: the device equals the host") {
  same_on_device<half, half>(ds::sgd{.lr = 0.1, .momentum = 0.9}, states<half>{});
  same_on_device<half, half>(ds::sgd{.lr = 0.1}, states<half>{});  // stores nothing
}
TEST_CASE("rmsprop in double with three states of three types: the device equals the host") {
  same_on_device<double, float>(ds::rmsprop{.momentum = 0.9, .centered = true}, states<float, half, bfloat16>{});
  same_on_device<double, float>(ds::rmsprop{.weight_decay = 0.1}, states<float, half, bfloat16>{});
}

TEST_CASE("lars, with and without the joint norm: the device equals the host") {
  same_with_groups<float>(ds::lars{.weight_decay = 0.1, .trust = 0.02});
  same_with_groups<float>(ds::lars{.momentum = 0, .weight_decay = 0.1, .trust = 0.02, .joint_norm = true});
}
TEST_CASE("lamb with clipping, in five launches: the device equals the host") {
  same_with_groups<float>(ds::lamb{.weight_decay = 0.1}, ds::clip_norm{0.5});
}

TEST_CASE("a chain with noise has the same bits on host and device") {
  ds::gradient_noise const noise{.eta = 0.3, .gamma = 0, .seed = 11};
  SUBCASE("in float") { same_with_groups<float>(ds::chain{ds::clip_value{0.5}, noise, ds::l2{0.125}, ds::adamw{}}); }
  SUBCASE("in bfloat16, rounded at random") {
    same_with_groups<bfloat16>(ds::chain{noise, ds::sgd{.lr = 0.125, .momentum = 0.5}}, ds::stochastic_rounding{11});
  }
}
TEST_CASE("a chain with sums over tensors behind a transform with a state has the same bits on host and device") {
  same_with_groups<float>(ds::chain{ds::gradient_trace{0.5}, ds::centralize{}, ds::l2{0.125}, ds::adam{}});
}
TEST_CASE("a chain is one kernel, as its rule") {
  auto const long_one = ds::chain{ds::clip_value{1}, ds::gradient_noise{}, ds::l2{0.1}, ds::adamw{}};
  CHECK(launches(long_one) == launches(ds::adamw{}));
  CHECK(launches(ds::chain{ds::clip_value{1}, ds::l2{0.1}, ds::lamb{}}) == launches(ds::lamb{}));
}
