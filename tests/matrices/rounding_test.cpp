// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// 16-bit matrices without a master: the tests of tests/rules/stochastic_test.cpp for rules for matrices.
#include <descent/matrices/host.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/muon.hpp>
#include <descent/rules/shampoo.hpp>
#include <descent/rules/sm3.hpp>
#include <descent/rules/soap.hpp>

#include <doctest/doctest.h>

#include "support/stall.hpp"

#include <string>

namespace ds = descent;

TEST_CASE("each rule for matrices keeps learning with stochastic rounding where rounding to nearest stalls") {
  auto const holds = [](std::string const& name, test::left_overs const& x) {
    INFO(name, ", lr ", x.rate, ": of the loss float leaves ", x.in_float, ", nearest ", x.nearest, ", stochastic ",
         x.stochastic);
    CHECK(x.in_float < 0.05);
    CHECK(x.nearest > 0.5);
    CHECK(x.stochastic < 0.1);
  };
  auto const learns = [&](std::string const& name, auto const& rule) {
    holds(name + ", bfloat16", test::compare_matrix_roundings<ds::bfloat16>(rule));
    holds(name + ", half", test::compare_matrix_roundings<ds::half>(rule));
    holds(name + ", bfloat16 with its state",
          test::compare_matrix_roundings<ds::bfloat16, ds::states<ds::bfloat16>>(rule));
  };
  learns("muon", ds::muon{.weight_decay = 0});
  learns("adafactor", ds::adafactor{.momentum = 0.9});
  learns("sm3", ds::sm3{});
  // eps above 1e-6 of the largest eigenvalue, also where nearest rounding stalls and 800 equal gradients add up.
  learns("shampoo", ds::shampoo{.eps = 0.05});
  learns("soap", ds::soap{.weight_decay = 0});
}
