// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// A factor of the gradients that comes from outside: what it multiplies, and what is no factor skips the step.
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/gradient_factor_at.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#include "support/message.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace ds = descent;

namespace {

struct model {
  std::vector<float> value = std::vector<float>(4100, 1.f), gradient = value;
  ds::parameters<float> list() {
    ds::parameters<float> p;
    p.add("w", value.data(), gradient.data(), 4100);
    return p;
  }
  void backward(int t, float scale) {
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = scale * float(int((i * 37 + std::size_t(t) * 101) % 257) - 128) / 256;
  }
};

/// Gradients times s, and the factor 1 / s, are the gradients: bit for bit, as s is a power of two.
template <class... Ps> void equals_plain(Ps const&... policies) {
  model plain, scaled;
  double factor = 1;
  ds::optimizer a{plain.list(), ds::adamw{.lr = 0.01}, policies...};
  ds::optimizer b{scaled.list(), ds::adamw{.lr = 0.01}, policies..., ds::gradient_factor_at{&factor}};
  for (int t = 1; t <= 6; ++t) {
    double const scale = std::ldexp(1, 3 * (t / 2) - 4);  // the same for two micro-batches
    plain.backward(t, 1), scaled.backward(t, float(scale));
    factor = 1 / scale;
    CHECK(a.gradient_norm() == b.gradient_norm());
    a.step(), b.step();
    CHECK(a.report().clip_factor == b.report().clip_factor);
  }
  CHECK(b.report().step > 0);
  CHECK(std::memcmp(plain.value.data(), scaled.value.data(), 4100 * sizeof(float)) == 0);
}

}  // namespace

TEST_CASE("gradient_factor_at: the true gradients, for the update and every norm") {
  equals_plain();
  equals_plain(ds::clip_norm{0.1}, ds::static_loss_scale{4});
  equals_plain(ds::clip_norm{0.1}, ds::accumulate{2});
}

TEST_CASE("gradient_factor_at: what is not finite and above 0 skips the step, and report() says so") {
  model m;
  float factor = 1;
  ds::optimizer opt{m.list(), ds::sgd{.momentum = 0.9}, ds::gradient_factor_at{&factor}};
  m.backward(1, 1);
  opt.step();
  auto const before = m.value;
  std::vector<float> const momentum(opt.state(std::string("w"), 0).begin(), opt.state(std::string("w"), 0).end());
  float const infinity = std::numeric_limits<float>::infinity();
  for (auto const& [bad, text] : {std::pair(std::nanf(""), "nan"), {infinity, "inf"}, {0.f, "0"}, {-1.f, "-1"}}) {
    factor = bad;
    opt.step();
    auto const r = opt.report();
    CHECK_FALSE(r.applied);
    CHECK(r.why == "the factor of the gradients, " + std::string(text) + ", is not finite and above 0 in float");
    CHECK(r.step == 1);
  }
  CHECK(m.value == before);
  auto const now = opt.state(std::string("w"), 0);
  CHECK(std::memcmp(momentum.data(), now.data(), momentum.size() * sizeof(float)) == 0);
  factor = 0.5;
  opt.step();
  CHECK(opt.report().applied);
  CHECK(m.value != before);
}

TEST_CASE("gradient_factor_at: a pointer that cannot be read is refused") {
  model m;
  CHECK(test::message([&] { ds::optimizer(m.list(), ds::sgd{}, ds::gradient_factor_at<>{}); }) ==
        "gradient_factor_at: the pointer must not be null");
  auto* const nowhere = reinterpret_cast<double*>(64);
  CHECK(test::message([&] {
          ds::optimizer(m.list(), ds::sgd{}, ds::gradient_factor_at{nowhere});
        }).starts_with("gradient_factor_at: the factor"));
}
