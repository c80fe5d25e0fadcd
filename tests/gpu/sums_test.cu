// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/clip.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/heavy_ball.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/layerwise.hpp>

namespace {

/// Two chunks, a tail, a tensor of a few elements, one that is not aligned, none at all, and one of
/// another group.
std::vector<test::tensor> const model{{4096 + 1003}, {3}, {517, 0, 1, 3}, {0}, {64, 1}};

template <class Rule, class... Ps> void same_on_device(Rule rule, Ps... policies) {
  test::stream s;
  test::tensors<float> x{model, s};
  test::twins both{x, rule, policies...};
  both.steps(3);
  both.expect_same();
  test::expect_same(both.host.report().grad_norm, both.device.report().grad_norm, "norm");
}

}  // namespace

TEST_CASE("lars, with and without the joint norm: the device equals the host") {
  same_on_device(descent::lars{.weight_decay = 0.1, .trust = 0.02});
  same_on_device(
      descent::lars{.momentum = 0, .weight_decay = 0.1, .trust = 0.02, .joint_norm = true});
}
TEST_CASE("lamb: the device equals the host") {
  same_on_device(descent::lamb{.weight_decay = 0.1});
}
TEST_CASE("lamb with clipping, in five launches: the device equals the host") {
  same_on_device(descent::lamb{.weight_decay = 0.1}, descent::clip_norm{0.5});
}
TEST_CASE("dog and its memory: the device equals the host") {
  same_on_device(descent::dog{.reps = 1e-2, .weight_decay = 0.1});
}
TEST_CASE("layerwise around a rule with memory: the device equals the host") {
  same_on_device(descent::layerwise<descent::heavy_ball>{.rule = {.nesterov = true}, .weight_decay = 0.1});
}
TEST_CASE("dog with clipping: the device equals the host") {
  same_on_device(descent::dog{.reps = 1e-2}, descent::clip_norm{0.5});
}
