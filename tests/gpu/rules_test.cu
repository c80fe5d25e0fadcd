// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>

namespace {

__global__ void fuse(float a, float b, float c, float* out) { *out = a * b + c; }

/// Two chunks, a tail, a tensor of a few elements, one that is not aligned, and one of another
/// group.
std::vector<test::tensor> const model{{4096 + 1003}, {3}, {517, 0, 1, 3}, {64, 1}};

template <class Rule, class... Ps> void same_on_device(Rule rule, Ps... policies) {
  test::stream s;
  test::tensors<float> x{model, s};
  test::twins both{x, rule, policies...};
  both.steps(3);
  both.expect_same();
}

}  // namespace

TEST_CASE("the device contracts products and sums exactly when these tests were told so") {
  test::stream s;
  test::device_vector<float> out{{0}, s};
  float const a = 1 + 0x1p-12f;
  fuse<<<1, 1, 0, s>>>(a, a, -(1 + 0x1p-11f), out.data());
  CHECK((out.get(s)[0] != 0) == test::contracted);
}

TEST_CASE("adam: the device equals the host") {
  same_on_device(descent::adam{.weight_decay = 0.1});
}
TEST_CASE("adamw: the device equals the host") { same_on_device(descent::adamw{.beta2 = 0.95}); }
TEST_CASE("sgd with momentum, dampening and decay: the device equals the host") {
  same_on_device(descent::sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.1, .weight_decay = 0.1});
}
TEST_CASE("sgd in Nesterov's form: the device equals the host") {
  same_on_device(descent::sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true});
}
TEST_CASE("sgd without momentum, which stores nothing: the device equals the host") {
  same_on_device(descent::sgd{.lr = 0.1});
}
TEST_CASE("lion: the device equals the host") {
  same_on_device(descent::lion{.lr = 0.01, .weight_decay = 0.1});
}
TEST_CASE("rmsprop, plain: the device equals the host") {
  same_on_device(descent::rmsprop{.weight_decay = 0.1});
}
TEST_CASE("rmsprop, centered and with momentum: the device equals the host") {
  same_on_device(descent::rmsprop{.momentum = 0.9, .centered = true});
}
