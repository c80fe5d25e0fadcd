// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Counts in a rule's state: integers in memory, exact whatever the types, and state like any other.
#include <descent/any_optimizer.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/policies/state_in.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>

#include "support/counted.hpp"
#include "support/message.hpp"
#include "support/problem.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace ds = descent;
using namespace test;
using ds::half, ds::bfloat16;

namespace {

using counts = std::vector<std::uint32_t>;
counts copy(auto const& x) { return {x.begin(), x.end()}; }

/// Whether a view is of T.
template <class T, class View> constexpr bool is_of(View const&) { return std::is_same_v<View, std::span<T const>>; }

/// Whether element i has a gradient in step t.
bool meets(std::size_t i, int t) { return std::size_t(t) % (1 + i % 5) == 0; }

/// Steps of an optimizer with these policies on 77 elements, and the counts that a loop finds.
template <class Value, class Rule, class... Ps> void counts_exactly(int steps, Rule rule, Ps... policies) {
  constexpr std::size_t n = 77;
  problem<Value, float> p({n});
  ds::optimizer opt{p.parameters(), rule, policies...};
  counts want(n);
  for (int t = 1; t <= steps; ++t) {
    for (std::size_t i = 0; i < n; ++i) p.grad[0][i] = meets(i, t) ? 0.01f : 0, want[i] += meets(i, t);
    opt.step();
  }
  CHECK(is_of<std::uint32_t>(opt.template state<1>("tensor0")));
  CHECK(copy(opt.template state<1>("tensor0")) == want);
}

}  // namespace

TEST_CASE("an element's updates are counted exactly, beside states and values of any type") {
  counts_exactly<float>(20, mean_descent{});
  counts_exactly<double>(20, mean_descent{});
  counts_exactly<half>(2100, mean_descent{}, ds::states<bfloat16>{}, ds::stochastic_rounding{1});  // past 2^11
  counts_exactly<bfloat16>(300, mean_descent{}, ds::states<half>{}, ds::master<float>{});
}

TEST_CASE("a count stays a count inside a chain and another rule") {
  counts_exactly<float>(300, ds::chain{ds::clip_value{1}, mean_descent{}}, ds::states<bfloat16>{});
  counts_exactly<float>(300, ds::layerwise<mean_descent>{.lr = 1e-3}, ds::states<bfloat16>{});

  problem<float> p({8});
  ds::chain const before{ds::gradient_trace{}, mean_descent{}};  // the rule's members stand first
  ds::optimizer const opt{p.parameters(), before, ds::states<bfloat16>{}};
  CHECK(is_of<bfloat16>(opt.state<0>("tensor0")));
  CHECK(is_of<std::uint32_t>(opt.state<1>("tensor0")));
  CHECK(is_of<bfloat16>(opt.state<2>("tensor0")));
}

TEST_CASE("states<T...> names the members that are no counts, the optimizer's text the type of each") {
  problem<float> p({8});
  ds::optimizer const opt{p.parameters(), mean_descent{}, ds::states<bfloat16>{}};
  CHECK(opt.state<0>("tensor0").size() == 8);
  CHECK(is_of<bfloat16>(opt.state<0>("tensor0")));
  auto const& buffers = opt.memory().buffers;
  CHECK(buffers.back().name == "state n (uint32)");
  CHECK(buffers.back().bytes == 4 * buffers.front().bytes / 2);
  std::string made_by;
  opt.save([&](std::string const& name, auto elements) {
    if constexpr (sizeof(elements[0]) == 1)
      if (name == "made_by") made_by.assign(elements.begin(), elements.end());
  });
  CHECK(made_by == "test::mean_descent, state bfloat16 and uint32");
}

TEST_CASE("counts can be in the caller's memory, and have no other type there") {
  problem<float> p({8});
  std::vector<std::uint32_t> n(8);
  std::vector<float> other(8);
  ds::state_memory list, wrong;
  list.add("tensor0.state.n", n), wrong.add("tensor0.state.n", other);
  ds::optimizer opt{p.parameters(), mean_descent{}, ds::state_in{&list}};
  for (std::size_t i = 0; i < 8; ++i) p.grad[0][i] = i % 2 ? 1.f : 0.f;
  opt.step();
  CHECK(n == counts{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(message([&] { ds::optimizer{p.parameters(), mean_descent{}, ds::state_in{&wrong}}; }) ==
        "state_in: 'tensor0.state.n' is stored in uint32, the list has float");
}

TEST_CASE("counts move with their rows, can be set, and are elements of uint32 without a type") {
  std::vector<float> w(6, 1.f), g{1, 1, 0, 0, 1, 1}, moved(8, 1.f), none(8);
  ds::parameters<float> before, after;
  before.add("w", w.data(), g.data(), ds::shape{3, 2});
  after.add("w", moved.data(), none.data(), ds::shape{4, 2});
  ds::optimizer opt{before, mean_descent{}};
  opt.step(), opt.step();
  CHECK(copy(opt.state<1>("w")) == counts{2, 2, 0, 0, 2, 2});
  std::vector<std::int64_t> const from{2, 1, -1, 0};
  ds::any_optimizer now{opt.gathered(after, {{"w", from.data()}})};
  auto* const typed = now.target<decltype(opt)>();
  CHECK(copy(typed->state<1>("w")) == counts{2, 2, 0, 0, 0, 0, 2, 2});

  typed->set_state<1>("w", counts{1, 2, 3, 4, 5, 6, 7, 1u << 31});
  bool seen = false;
  now.save([&](std::string const& name, ds::any_elements const& x) {
    if (name != "w.state.n") return;
    seen = x.type == ds::element_type::u32 && x.size == 4 && x.count == 8;
    CHECK(static_cast<std::uint32_t const*>(x.data)[7] == 1u << 31);
  });
  CHECK(seen);
  now.step();  // all gradients are 0
  CHECK(copy(typed->state<1>("w")) == counts{1, 2, 3, 4, 5, 6, 7, 1u << 31});
}
