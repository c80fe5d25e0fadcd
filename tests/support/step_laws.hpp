// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <doctest/doctest.h>

#include "optimizer_of.hpp"
#include "problem.hpp"
#include "row.hpp"
#include "sizes.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

/// Laws that tests check in several types.
namespace test {

inline std::vector<std::size_t> const sizes_of_steps{3, chunk + 9, 0, 21};

/// What an optimizer keeps: the exact values, or their masters, and the state, as bits.
template <class Rule, class Optimizer, class Value> auto kept(Optimizer const& opt, problem<Value> const& p) {
  using number = std::remove_cv_t<typename decltype(opt.state(p.name(0), 0))::element_type>;
  std::vector<std::vector<number>> all;
  for (std::size_t k = 0; k < p.value.size(); ++k) {
    auto const copy = [&](auto const& x) { all.emplace_back(x.begin(), x.end()); };
    if constexpr (std::is_same_v<Value, number>) copy(p.value[k]);
    else copy(opt.master(p.name(k)));
    for (std::size_t s = 0; s < descent::detail::members<Rule::template state>; ++s) copy(opt.state(p.name(k), s));
  }
  return all;
}

/// A step with one gradient that is not finite changes nothing, now or later. The policies must look at gradients.
template <class Value, class Rule, class... Ps> void check_skips(row<Rule> const& row, Ps... policies) {
  struct place { std::size_t tensor, element; };
  constexpr double infinity = std::numeric_limits<double>::infinity(),
                   not_a_number = std::numeric_limits<double>::quiet_NaN();
  std::size_t trial = 0;
  for (place at : {place{0, 0}, {1, chunk - 1}, {1, chunk + 8}, {3, 20}}) {
    double const bad = std::array{not_a_number, infinity, -infinity}[trial++ % 3];
    INFO(row.name, ", ", bad, " in element ", at.element, " of tensor ", at.tensor);
    problem<Value> disturbed(sizes_of_steps), smooth(sizes_of_steps);
    auto a = optimizer_of(disturbed.parameters(), row.rule, policies...);
    auto b = optimizer_of(smooth.parameters(), row.rule, policies...);
    for (int t = 1; t <= 4; ++t) {
      if (t != 2) {
        disturbed.set_gradients(100 + t);
        disturbed.grad[at.tensor][at.element] = descent::narrow<Value>(bad);
        auto const values = disturbed.value;
        auto const rest = kept<Rule>(a, disturbed);
        a.step();
        CHECK(same_bits(disturbed.value, values));
        CHECK(same_bits(kept<Rule>(a, disturbed), rest));
        CHECK_FALSE(a.report().applied);
        CHECK(a.report().step == t - 1);
      }
      disturbed.set_gradients(t);
      smooth.set_gradients(t);
      a.step();
      b.step();
      CHECK(a.report().applied);
    }
    CHECK(a.report().step == 4);
    CHECK(a.report().skipped == 3);
    CHECK(same_bits(disturbed.value, smooth.value));
    CHECK(same_bits(kept<Rule>(a, disturbed), kept<Rule>(b, smooth)));
  }
}

/// Whether all values stay finite for some steps with gradients of this size, in one of four orders with others.
template <class T, class Optimizer>
bool stay_finite(problem<T>& p, Optimizer& opt, double size, int order, int steps = 16) {
  bool finite = true;
  for (int t = 1; t <= steps; ++t) {
    for (std::size_t k = 0; k < p.grad.size(); ++k)
      for (std::size_t i = 0; i < p.grad[k].size(); ++i) {
        double const ordinary = gradient(k, i, t), large = std::copysign(size, ordinary);
        double const in_order[] = {t <= 8 ? size : ordinary, t <= 8 ? large : 0, t % 2 ? large : size * 1e-9,
                                   t == 1 || i % 2 ? ordinary : large};
        p.grad[k][i] = descent::narrow<T>(in_order[order]);
      }
    opt.step();
    for (auto const& tensor : p.value)
      for (T x : tensor) finite = finite && std::isfinite(descent::widen<double>(x));
  }
  return finite;
}

}  // namespace test
