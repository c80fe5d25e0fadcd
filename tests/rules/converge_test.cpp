// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/policies/clip.hpp>

#include <doctest/doctest.h>

#include "support/convergence.hpp"

#include <vector>

/// Every rule finds the minimum of each problem of convergence.hpp, in double and in float. Steps and distance from the
/// minimum are the same in both; sixteen_bits_test.cpp has the 16-bit types.

using namespace test;
namespace ds = descent;

namespace {

void all_converge(function const& f) {
  each_convergence([&](auto const& rule) {
    CHECK(converges<double>(f, rule, ds::clip_norm{1e30}));
    CHECK(converges<float>(f, rule));
  });
}

}  // namespace

TEST_CASE("the gradients of the problems are those of their values") {
  for (function const& f :
       {function_of<quadratic>, function_of<rosenbrock>, function_of<beale>, function_of<logistic>}) {
    INFO(f.name);
    std::vector<double> x;
    for (std::size_t i = 0; i < f.size; ++i) x.push_back(f.start(i));
    auto const g = f.gradient(x);
    for (std::size_t i = 0; i < f.size; ++i) {
      auto above = x, below = x;
      above[i] += 1e-5, below[i] -= 1e-5;
      CHECK(g[i] == doctest::Approx((f.value(above) - f.value(below)) / 2e-5).epsilon(1e-5));
    }
  }
}

TEST_CASE("every rule converges on a quadratic, in double and float") { all_converge(function_of<quadratic>); }
TEST_CASE("every rule converges on Rosenbrock's function, in double and float") {
  all_converge(function_of<rosenbrock>);
}
TEST_CASE("every rule converges on Beale's function, in double and float") { all_converge(function_of<beale>); }
TEST_CASE("every rule converges in logistic regression, in double and float") { all_converge(function_of<logistic>); }
