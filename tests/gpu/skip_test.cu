// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "support.cuh"

#include <descent/clip.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/storage.hpp>

#include <limits>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<test::tensor> const model{{3}, {0}, {2 * 4096 + 9}, {17, 1, 1, 3}, {8, 0}};

/// A bad gradient in each of these places skips a step on the device, and the report names the
/// tensor.
template <class Value, class Rule, class... Ps> void skips(Rule rule, Ps... policies) {
  test::stream s;
  test::tensors<Value> x{model, s};
  test::twins both{x, rule, policies...};
  both.steps(1);
  std::pair<std::size_t, std::int64_t> const places[] = {
      {0, 0}, {2, 0},  {2, 7}, {2, 4095}, {2, 4096}, {2, 2 * 4096}, {2, 2 * 4096 + 8},
      {3, 0}, {3, 16}, {4, 7}};
  int skipped = 0;
  for (auto const& place : places)
    for (float const bad : {infinity, -infinity, not_a_number}) {
      INFO(bad, " at tensor ", place.first, ", element ", place.second);
      auto& g = x.gradient_of(place.first, place.second);
      auto const good = std::exchange(g, Value(bad));
      auto const before = x.value;
      both.step();
      auto const r = both.device.report();
      CHECK(!r.applied);
      CHECK(r.step == 1);
      CHECK(r.skipped == ++skipped);
      CHECK(r.why.starts_with("the gradient of 'w" + std::to_string(place.first) + "' is not finite"));
      CHECK(std::memcmp(x.value.data(), before.data(), before.size() * sizeof(Value)) == 0);
      g = good;
    }
  x.send_gradients();
  both.expect_same();  // also states and masters; the host left all of them alone
  both.steps(1);
  both.expect_same();
  CHECK(both.device.report().applied);
}

}  // namespace

TEST_CASE("a gradient that is not finite, anywhere, skips the step") {
  skips<float>(descent::adamw{}, descent::skip_nonfinite{});
}
TEST_CASE("half gradients with a master skip, too") {
  skips<descent::half>(descent::adamw{}, descent::clip_norm{1}, descent::master<float>{});
}
TEST_CASE("a rule with sums skips before its state and its memory change") {
  skips<float>(descent::dog{.reps = 0.1}, descent::clip_norm{1});
}

TEST_CASE("the tensor with the first bad gradient is named") {
  test::stream s;
  test::tensors<float> x{model, s};
  test::twins both{x, descent::adamw{}, descent::skip_nonfinite{}};
  x.gradient_of(4, 0) = not_a_number;
  x.gradient_of(2, 5000) = infinity;
  both.step();
  CHECK(both.device.report().why == "the gradient of 'w2' is not finite");
  CHECK(both.host.report().why == both.device.report().why);
}

TEST_CASE("finite gradients whose squares add up to infinity are no reason to skip") {
  test::stream s;
  test::tensors<double> x{{{1}, {1}, {2}}, s};
  test::twins both{x, descent::sgd{}, descent::clip_norm{1}};
  x.gradient_of(0, 0) = x.gradient_of(1, 0) = 1.2e154;
  x.gradient_of(2, 1) = -3e200;
  both.step();
  both.expect_same();
  CHECK(both.device.report().applied);
}

TEST_CASE("the norm has the same bits as on the host, for gradients of all magnitudes") {
  // Few elements show the order within a thread, many the order of threads, chunks and tensors.
  std::vector<test::tensor> const sizes[] = {
      {{16}}, {{300}}, {{1}, {5000}, {33, 0, 0, 5}, {3 * 4096}}};
  for (auto const& list : sizes) {
    test::stream s;
    test::tensors<float> x{list, s};
    test::twins both{x, descent::adamw{}, descent::skip_nonfinite{}};
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(list.size());
      CAPTURE(seed);
      x.new_gradients(seed);
      float const scale = seed == 20 ? 0 : std::pow(10.f, float(seed % 4) * 20 - 30);
      for (std::size_t k = 0; k < list.size(); ++k)
        for (std::int64_t i = 0; i < list[k].count; ++i)
          x.gradient_of(k, i) *= scale * (seed % 2 ? std::exp2(-float(i % 30)) : 1);
      both.step();
      double const h = both.host.report().grad_norm, d = both.device.report().grad_norm;
      CHECK(std::memcmp(&h, &d, sizeof h) == 0);
      CHECK((scale == 0 ? d == 0 : d > 0));
    }
  }
}

TEST_CASE("zero_grad clears all gradients and nothing beside them") {
  test::stream s;
  test::tensors<descent::half> x{{{9}, {0}, {4096 + 3, 0, 0, 5}, {16, 1}}, s};
  test::twins both{x, descent::adamw{}, descent::skip_nonfinite{}, descent::master<float>{}};
  both.host.zero_grad(), both.device.zero_grad();
  both.expect_same();
  for (std::int64_t i = 0; i < 9; ++i) CHECK(test::number(x.gradient_of(0, i)) == 0);
}
