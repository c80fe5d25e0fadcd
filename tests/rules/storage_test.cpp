// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/policies/storage.hpp>

#include <doctest/doctest.h>

#include "support/all_rules.hpp"
#include "support/oracle.hpp"
#include "support/storage_product.hpp"
#include "support/ulp.hpp"

#include <algorithm>
#include <span>
#include <utility>

/// Whole optimizers with a type for each role, compared with the rule in double from what was stored before each step;
/// and combinations of types without an optimizer.

using namespace test;
namespace ds = descent;

namespace {

template <class Value, class Gradient, class... Ps> struct with {};

/// Checks 20 steps.
template <class Value, class Gradient, class Rule, class... Ps>
void check(row<Rule> const& row, with<Value, Gradient, Ps...>) {
  using plan = ds::detail::plan<Value, Gradient, Rule, Ps...>;
  INFO(row.name, ": value ", format_of<Value>.name, ", gradient ", format_of<Gradient>.name);
  problem<Value, Gradient> p({5, 131});
  oracle truth(row.rule, p);
  auto opt = optimizer_of(p.parameters(), row.rule, Ps{}...);
  auto const exact = [&](std::size_t k) {
    if constexpr (plan::has_master) return opt.master(p.name(k));
    else return std::span<Value const>(p.value[k]);
  };
  auto const each_slot = [&](auto f) {
    [&]<std::size_t... S>(std::index_sequence<S...>) { (f.template operator()<S>(), ...); }
    (typename plan::every_slot{});
  };
  double worst = 0;
  for (int t = 1; t <= 20; ++t) {
    p.set_gradients(t);
    truth.take_gradients(p);
    for (std::size_t k = 0; k < 2; ++k)
      for (std::size_t i = 0; i < p.value[k].size(); ++i) {
        truth.tensors[k].p[i] = ds::widen<double>(exact(k)[i]);
        each_slot([&]<std::size_t S>() {
          auto const s = opt.template state<S>(p.name(k));
          reinterpret_cast<double*>(&truth.tensors[k].s[i])[S] = s.empty() ? 0 : ds::widen<double>(s[i]);
        });
      }
    auto const before = truth.tensors;
    truth.step();
    opt.step();
    for (std::size_t k = 0; k < 2; ++k)
      for (std::size_t i = 0; i < p.value[k].size(); ++i) {
        auto const near = [&]<class T>(T stored, double expected, double old) {
          worst = std::max(worst, ulps(format_of<T>, ds::widen<double>(stored), rounded(format_of<T>, expected), old));
        };
        near(exact(k)[i], truth.tensors[k].p[i], before[k].p[i]);
        CHECK(ds::widen<double>(p.value[k][i]) == rounded(format_of<Value>, ds::widen<double>(exact(k)[i])));
        each_slot([&]<std::size_t S>() {
          auto const s = opt.template state<S>(p.name(k));
          if (!s.empty())
            near(s[i], reinterpret_cast<double const*>(&truth.tensors[k].s[i])[S],
                 reinterpret_cast<double const*>(&before[k].s[i])[S]);
        });
      }
  }
  CHECK(worst <= most_ulps<Rule>);
}

/// As many types of state as the rule has members.
template <class Rule> auto mixed_states() {
  constexpr std::size_t n = ds::detail::members<Rule::template state>;
  static_assert(n <= 5, "a rule with more members of state: add a line");
  if constexpr (n == 5) return ds::states<ds::half, float, ds::bfloat16, double, float>{};
  else if constexpr (n == 4) return ds::states<ds::bfloat16, float, ds::half, double>{};
  else if constexpr (n == 3) return ds::states<ds::bfloat16, float, ds::half>{};
  else if constexpr (n == 2) return ds::states<ds::bfloat16, float>{};
  else return ds::states<ds::bfloat16>{};
}

}  // namespace

TEST_CASE(
    "every rule with a type for each role, in double and with a master in float; some with each type in each role") {
  using ds::half, ds::bfloat16, ds::master, ds::states;
  each_rule([]<class Rule>(row<Rule> const& row) {
    check(row, with<double, half, decltype(mixed_states<Rule>())>{});
    check(row, with<half, bfloat16, master<float>, states<half>>{});
    if constexpr (in_every_storage<Rule>) {
      check(row, with<bfloat16, double, master<double>, states<double>>{});
      check(row, with<float, float, master<bfloat16>, states<float>>{});
    }
  });
}

TEST_CASE("every rule: follows itself in double with storage types such that every pair occurs, or with all") {
  each_rule_once([]<class Rule>() { check_storage<Rule>(); });
}
