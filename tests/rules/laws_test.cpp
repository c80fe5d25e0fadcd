// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <descent/core/fields.hpp>
#include <descent/optimizer/detail/made_by.hpp>
#include <descent/core/detail/each_setting.hpp>
#include <descent/parameters.hpp>

#include "support/all_rules.hpp"
#include "support/settings.hpp"
#include "support/sizes.hpp"
#include "support/step_laws.hpp"
#include "support/ulp.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

/// Laws that hold for every rule, whatever it computes. Each rule needs only a few optimizer types, to limit compile
/// time.

using namespace test;

namespace {

using tensors = std::vector<std::vector<float>>;

template <class Rule> struct outcome { tensors values, states; };

template <class Rule, class Optimizer>
void append_states(tensors& all, Optimizer const& opt, std::string const& name) {
  for (std::size_t s = 0; s < descent::detail::members<Rule::template state>; ++s) {
    std::span<float const> const x = opt.state(name, s);
    all.emplace_back(x.begin(), x.end());
  }
}

/// Values and states of the tensors after some steps with the gradients of the problem, times a factor.
template <class Rule> outcome<Rule> run(Rule const& rule, problem<float> p, int steps, double scale = 1) {
  auto opt = optimizer_of(p.parameters(), rule);
  for (int t = 1; t <= steps; ++t) {
    p.set_gradients(t, scale);
    opt.step();
  }
  outcome<Rule> result{p.value, {}};
  for (std::size_t k = 0; k < p.value.size(); ++k) append_states<Rule>(result.states, opt, p.name(k));
  return result;
}

template <class Rule> Rule without_decay(Rule rule) {
  if constexpr (requires { rule.weight_decay; }) rule.weight_decay = 0;
  return rule;
}

}  // namespace

TEST_CASE("every rule accepts its defaults") {
  each_rule_once([]<class Rule>() { CHECK_NOTHROW(descent::check_rule<double>(Rule{})); });
}

TEST_CASE("every rule: the same arguments give the same bits") {
  each_rule([](auto const& row) {
    INFO(row.name);
    auto const a = run(row.rule, problem<float>(tensor_sizes), 5), b = run(row.rule, problem<float>(tensor_sizes), 5);
    CHECK(same_bits(a.values, b.values));
    CHECK(same_bits(a.states, b.states));
    CHECK_FALSE(same_bits(a.values, problem<float>(tensor_sizes).value));
  });
}

TEST_CASE("every rule: a zero gradient without decay moves nothing") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    if constexpr (moves_by_itself<Rule>) return;
    INFO(row.name);
    problem<float> const before(tensor_sizes);
    CHECK(same_bits(run(without_decay(row.rule), before, 3, 0).values, before.value));
  });
}

TEST_CASE("every rule: with lr = 0 no value moves, but the state does as with any lr") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    INFO(row.name);
    problem<float> const before(tensor_sizes);
    Rule still = row.rule;
    if constexpr (requires { still.lr; }) {
      still.lr = 0;
      if constexpr (!moves_without_lr<Rule>) CHECK(same_bits(run(still, before, 3).values, before.value));
      if constexpr (lr_in_state<Rule>) return;
      CHECK(same_bits(run(still, before, 1).states, run(row.rule, before, 1).states));
    }
  });
}

TEST_CASE(
    "every rule: n tensors in one optimizer equal n optimizers, unless the rule looks at all of "
    "them") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    if constexpr (modelwide<Rule>) return;
    INFO(row.name);
    problem<float> together(tensor_sizes), alone(tensor_sizes);
    auto opt = optimizer_of(together.parameters(), row.rule);
    std::vector<decltype(opt)> each;
    for (std::size_t k = 0; k < tensor_sizes.size(); ++k) {
      descent::parameters<float> list;
      alone.add(list, k);
      each.push_back(optimizer_of(list, row.rule));
    }
    for (int t = 1; t <= 5; ++t) {
      together.set_gradients(t);
      alone.set_gradients(t);
      opt.step();
      for (auto& one : each) one.step();
    }
    CHECK(same_bits(together.value, alone.value));
  });
}

TEST_CASE("every rule: the order of tensors does not matter") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    INFO(row.name);
    problem<float> forward(tensor_sizes), backward(tensor_sizes);
    descent::parameters<float> reversed;
    for (std::size_t k = tensor_sizes.size(); k-- > 0;) backward.add(reversed, k);
    auto a = optimizer_of(forward.parameters(), row.rule), b = optimizer_of(reversed, row.rule);
    for (int t = 1; t <= 5; ++t) {
      forward.set_gradients(t);
      backward.set_gradients(t);
      a.step();
      b.step();
    }
    if constexpr (!modelwide<Rule>) CHECK(same_bits(forward.value, backward.value));
    else  // a sum in double over the model is rounded in another order: rarely, one float differs
      for (std::size_t k = 0; k < forward.value.size(); ++k)
        for (std::size_t i = 0; i < forward.value[k].size(); ++i)
          REQUIRE(ulps(format_of<float>, forward.value[k][i], backward.value[k][i]) <= 1);
  });
}

TEST_CASE("every rule: splitting a tensor does not matter, unless the rule looks at all of it") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    if constexpr (!elementwise<Rule> && !modelwide<Rule>) return;
    INFO(row.name);
    std::size_t const n = 2 * chunk + 77;
    problem<float> whole({n}), parts({n});
    descent::parameters<float> list;
    std::size_t begin = 0;
    for (std::size_t size : {std::size_t(3), chunk, std::size_t(0), std::size_t(8), n - chunk - 11}) {
      list.add("from " + std::to_string(list.views().size()), parts.value[0].data() + begin,
               parts.grad[0].data() + begin, size);
      begin += size;
    }
    REQUIRE(begin == n);
    auto a = optimizer_of(whole.parameters(), row.rule), b = optimizer_of(list, row.rule);
    for (int t = 1; t <= 5; ++t) {
      whole.set_gradients(t);
      parts.set_gradients(t);
      a.step();
      b.step();
    }
    if constexpr (elementwise<Rule>) CHECK(same_bits(whole.value, parts.value));
    else
      for (std::size_t i = 0; i < n; ++i) REQUIRE(ulps(format_of<float>, whole.value[0][i], parts.value[0][i]) <= 1);
  });
}

TEST_CASE("every rule: elements do not change places") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    if constexpr (!elementwise<Rule>) return;
    INFO(row.name);
    std::size_t const n = chunk + 19;
    problem<float> straight({n}), turned({n});
    std::reverse(turned.value[0].begin(), turned.value[0].end());
    auto a = optimizer_of(straight.parameters(), row.rule), b = optimizer_of(turned.parameters(), row.rule);
    for (int t = 1; t <= 5; ++t) {
      straight.set_gradients(t);
      turned.set_gradients(t);
      std::reverse(turned.grad[0].begin(), turned.grad[0].end());
      a.step();
      b.step();
    }
    std::reverse(turned.value[0].begin(), turned.value[0].end());
    CHECK(same_bits(straight.value, turned.value));
  });
}

TEST_CASE("every rule: 1000 steps stay finite") {
  each_rule([](auto const& row) {
    INFO(row.name);
    for (auto const& x : run(row.rule, problem<float>({13}), 1000).values)
      for (float p : x) CHECK(std::isfinite(p));
  });
}

TEST_CASE("every rule: finite gradients up to a hundredth of the type's largest leave finite values") {
  each_rule([](auto const& row) {
    for (int order = 0; order < 4; ++order) {
      CAPTURE(row.name);
      CAPTURE(order);
      for (double size : {1.4e-45, 1e-38, 1e-20, 1e10, 2e19, 1e25, 1e36}) {
        CAPTURE(size);
        problem<float> p({13, 8});
        auto opt = optimizer_of(p.parameters(), row.rule);
        CHECK(stay_finite(p, opt, size, order));
      }
    }
  });
}

TEST_CASE("every rule: each number in it can be read and set by its name") {
  each_rule_once([]<class Rule>() {
    Rule rule;
    int numbers = 0, named = 0;
    REQUIRE(descent::detail::each_number(rule, [&](auto) { ++numbers; }));
    std::vector<std::string> names;
    descent::each_field(rule, [&](std::string const& name, auto& field) {
      names.push_back(name);
      field = static_cast<std::remove_reference_t<decltype(field)>>(++named % 2);
    });
    CAPTURE(descent::detail::plain_name<Rule>());
    CHECK(named == numbers);
    int k = 0;
    for (std::string const& name : names) {
      CHECK(descent::get_field(rule, name) == ++k % 2);
      descent::set_field(rule, name, 1);
      CHECK(descent::get_field(rule, name) == 1);
    }
    CHECK(test::settings_in_text(Rule{}) == numbers);
  });
}
