// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/matrices/matrices.hpp>
#include <descent/policies/rounding.hpp>
#include <descent/rules/sgd.hpp>

#include "optimizer_of.hpp"

#include <cstddef>
#include <type_traits>
#include <vector>

/// A convex problem on which small updates are lost in 16 bits.
namespace test {

/// A start where the numbers of a type are 2^-7 apart: nearest rounding loses an update below 2^-8.
template <class Value> inline constexpr double stall_start = std::is_same_v<Value, descent::half> ? 12 : 1.5;

/// The loss after 800 steps, relative to the first: the sum over the elements of a matrix of (x - c)^2 / 2, with c 1/8
/// to 1/4 from the start.
template <class Value, class Rule, class... Ps>
double left_over(double start, descent::shape shape, Rule const& rule, Ps... policies) {
  std::size_t const size = std::size_t(shape.rows * shape.columns);
  std::vector<Value> x(size, descent::narrow<Value>(start)), g(size);
  descent::parameters<Value> list;
  list.add("x", x.data(), g.data(), shape);
  auto opt = optimizer_of(list, rule, policies...);

  double first = 0, now = 0;
  for (int t = 0; t <= 800; ++t) {
    now = 0;
    for (std::size_t i = 0; i < size; ++i) {
      double const c = start + (i % 2 ? 0.25 : -0.25) * (1 - double(i % 19) / 40);
      double const away = descent::widen<double>(x[i]) - c;
      g[i] = descent::narrow<Value>(away);
      now += away * away / 2;
    }
    if (t == 0) first = now;
    current_loss = float(now);
    if (t < 800) opt.step();
  }
  return now / first;
}

/// The remaining loss in float, in 16 bits with nearest rounding, and with stochastic rounding, at the smallest of
/// twelve rates at which float leaves less than 1/20.
struct left_overs { double rate = 0, in_float = 1, nearest = 1, stochastic = 1; };
template <class Value, class... States, class Left> left_overs compare_roundings_of(Left const& left) {
  left_overs x;
  for (double lr : {3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1., 3., 10.}) {
    x.rate = lr;
    x.in_float = left(float{}, lr);
    if (x.in_float < 0.05) break;
  }
  x.nearest = left(Value{}, x.rate, States{}...);
  x.stochastic = left(Value{}, x.rate, States{}..., descent::stochastic_rounding{1});
  return x;
}

/// For a rule for vectors.
template <class Value, class... States, class Rule> left_overs compare_roundings(Rule rule) {
  return compare_roundings_of<Value, States...>([&]<class T, class... Ps>(T, double lr, Ps... policies) {
    if constexpr (requires { rule.lr; }) rule.lr = lr;
    return left_over<T>(stall_start<Value>, {256, 1}, rule, policies...);
  });
}

/// For a rule for matrices.
template <class Value, class... States, class Rule> left_overs compare_matrix_roundings(Rule rule) {
  return compare_roundings_of<Value, States...>([&]<class T, class... Ps>(T, double lr, Ps... policies) {
    rule.lr = lr;
    return left_over<T>(stall_start<Value>, {12, 20}, descent::sgd{}, descent::matrices{rule}, policies...);
  });
}

}  // namespace test
