// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Chains on the device: the bits of the host, also of the noise, and no launch more than the rule alone.
#include "support.cuh"

#include <descent/chain.hpp>
#include <descent/clip.hpp>
#include <descent/cuda.cuh>
#include <descent/noise.hpp>
#include <descent/optimizer.hpp>
#include <descent/rounding.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/transforms.hpp>

namespace ds = descent;

namespace {

/// Two chunks and a tail, a tensor that is not aligned, an empty one, two groups.
std::vector<test::tensor> const model{{4096 + 203}, {3, 1}, {0}, {117, 0, 1, 3}, {64, 1}};

template <class Value, class Rule, class... Ps> void same_on_both(Rule const& rule, Ps... policies) {
  test::stream s;
  test::tensors<Value> x{model, s};
  test::twins both{x, rule, policies...};
  for (int t = 1; t <= 3; ++t) {
    x.new_gradients(std::uint64_t(t));
    if (t == 2) both.host.group(1).lr = both.device.group(1).lr = 0.5 * rule.lr;
    both.step();
  }
  both.expect_same();
}

template <class Rule> std::size_t launches(Rule const& rule) {
  test::stream s;
  test::tensors<float> x{{{100}}, s};
  ds::optimizer opt{x.on_device(), rule, ds::cuda{s}};
  opt.step();
  s.wait();
  return test::graph(s, [&] { opt.step(); }).nodes;
}

}  // namespace

TEST_CASE("a chain with noise has the same bits on host and device") {
  ds::gradient_noise const noise{.eta = 0.3, .gamma = 0, .seed = 11};
  SUBCASE("in float") { same_on_both<float>(ds::chain{ds::clip_value{0.5}, noise, ds::l2{0.125}, ds::adamw{}}); }
  SUBCASE("in bfloat16, rounded at random") {
    same_on_both<ds::bfloat16>(ds::chain{noise, ds::sgd{.lr = 0.125, .momentum = 0.5}}, ds::stochastic_rounding{11});
  }
}

TEST_CASE("a chain with sums over tensors behind a transform with a state has the same bits on host and device") {
  same_on_both<float>(ds::chain{ds::gradient_trace{0.5}, ds::centralize{}, ds::l2{0.125}, ds::adam{}});
}

TEST_CASE("a chain is one kernel, as its rule") {
  CHECK(launches(ds::chain{ds::clip_value{1}, ds::l2{0.1}, ds::gradient_noise{}, ds::adam{}}) == launches(ds::adam{}));
  CHECK(launches(ds::chain{ds::clip_value{1}, ds::l2{0.1}, ds::lamb{}}) == launches(ds::lamb{}));
}
