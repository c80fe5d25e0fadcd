// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The ranges that nvtx_ranges gives to a profiler.
#include <descent/comm/threads.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/nvtx.hpp>
#include <descent/ranks/parallel.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#include "../../examples/how_to/nvtx_tool.hpp"
#include "support/problem.hpp"
#include "support/ranks.hpp"
#include "support/sizes.hpp"

#include <limits>
#include <string>
#include <vector>

namespace ds = descent;

namespace {

using lines = std::vector<std::string>;

/// An optimizer with ranges, in a process with a tool.
template <class Rule, class... Ps> auto ranged(test::problem<float>& x, Rule const& rule, Ps const&... policies) {
  example::nvtx_tool::attach();
  example::nvtx_tool::take();
  x.set_gradients(1);
  return ds::optimizer{x.parameters(), rule, policies..., ds::nvtx_ranges{}};
}

/// A profiler of a user.
struct counted {
  using policy_kind = ds::kind::profiler;
  static inline int open = 0, begun = 0;
  struct range {
    range() { ++open, ++begun; }
    range(range const&) = delete;
    ~range() { --open; }
  };
  static range begin(char const*) { return {}; }
};

struct failing {
  DESCENT_HD double operator()(std::int64_t step) const {
    if (step == 1) throw std::runtime_error("no rate");
    return 0.1;
  }
};

}  // namespace

TEST_CASE("nvtx_ranges: each part of a step is a range inside that of the step, in the domain descent") {
  test::problem<float> x(test::tensor_sizes);
  SUBCASE("a rule alone") {
    auto opt = ranged(x, ds::sgd{});
    opt.step();
    CHECK(example::nvtx_tool::take() == lines{"descent: step", "  descent: update"});
  }
  SUBCASE("a clipped norm") {
    auto opt = ranged(x, ds::adamw{}, ds::clip_norm{1});
    opt.step();
    CHECK(example::nvtx_tool::take() == lines{"descent: step", "  descent: measure", "  descent: update"});
  }
  SUBCASE("sums that follow the norm") {
    auto opt = ranged(x, ds::lamb{}, ds::clip_norm{1});
    opt.step();
    CHECK(example::nvtx_tool::take() ==
          lines{"descent: step", "  descent: measure", "  descent: measure", "  descent: update"});
  }
  SUBCASE("a step that is skipped") {
    auto opt = ranged(x, ds::sgd{}, ds::skip_nonfinite{});
    x.grad[1][0] = std::numeric_limits<float>::infinity();
    opt.step();
    CHECK(example::nvtx_tool::take() == lines{"descent: step", "  descent: measure"});
  }
  SUBCASE("micro-batches") {
    auto opt = ranged(x, ds::sgd{}, ds::accumulate{3});
    opt.step();
    CHECK(example::nvtx_tool::take() == lines{"descent: step"});
    opt.flush();
    CHECK(example::nvtx_tool::take() == lines{"descent: step", "  descent: update"});
  }
  SUBCASE("a call outside of a step") {
    auto opt = ranged(x, ds::sgd{});
    opt.gradient_norm();
    CHECK(example::nvtx_tool::take() == lines{"descent: measure"});
  }
}

TEST_CASE("nvtx_ranges: ranks also have ranges of their sums and of the values that they exchange") {
  ds::comm::threads world{2};
  auto const thrown = ranks::on_ranks(world, [](auto& comm) {
    test::problem<float> x(test::tensor_sizes);
    auto opt = ranged(x, ds::sgd{}, ds::clip_norm{1}, ds::sharded{comm});
    example::nvtx_tool::take();
    opt.step();
    if (auto const got = example::nvtx_tool::take();
        got != lines{"descent: step", "  descent: reduce gradients", "  descent: measure", "  descent: update",
                     "  descent: gather values"})
      throw std::runtime_error(got.empty() ? "no ranges" : got.back());
  });
  CHECK(ranks::none(thrown));
}

TEST_CASE("nvtx_ranges: the bits of a step do not change, and without the policy there are no ranges") {
  test::problem<float> x(test::tensor_sizes), y(test::tensor_sizes);
  auto with = ranged(x, ds::lamb{}, ds::clip_norm{0.5});
  ds::optimizer without{y.parameters(), ds::lamb{}, ds::clip_norm{0.5}};
  for (int t = 1; t <= 3; ++t) {
    x.set_gradients(t), y.set_gradients(t);
    with.step();
    CHECK(example::nvtx_tool::take().size() == 4);
    without.step();
    CHECK(example::nvtx_tool::take().empty());
  }
  CHECK(test::same_bits(x.value, y.value));
}

TEST_CASE("kind::profiler: a policy of a user gets the same ranges, and a step that throws ends its own") {
  test::problem<float> x(test::tensor_sizes);
  x.set_gradients(1);
  ds::optimizer opt{x.parameters(), ds::sgd{}, ds::learning_rate(failing{}), counted{}};
  opt.step();
  CHECK(counted::begun == 2);
  CHECK_THROWS_WITH(opt.step(), "no rate");
  CHECK(counted::begun == 3);
  CHECK(counted::open == 0);
}
