// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/rules/adabound.hpp>
#include <descent/rules/padam.hpp>
#include <descent/rules/qhadam.hpp>
#include <descent/rules/qhm.hpp>
#include <descent/rules/sophia.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <span>
#include <string>
#include <vector>

using namespace test::reference;
namespace ds = descent;

TEST_CASE("qhm, qhadam, adabound, padam and sophia follow their peers for 100 steps") {
  // pytorch_optimizer adds 1e-15 to v of adabound under the square root.
  follow_all("values_more.txt", 0, named<ds::qhm>{"qhm"}, named<ds::qhadam>{"qhadam"},
             named<ds::adabound>{"adabound", {.values = 1e-12}}, named<ds::padam>{"padam"},
             named<ds::sophia>{"sophia"});
}

TEST_CASE("sophia with the curvature that its caller writes follows optax") {
  each_case("values_more.txt", 2, has_schedule, [](golden const& g) {
    REQUIRE(g.options.at("schedule") == "curvature");
    // The caller sets h after steps 1, 6, 11, ...
    auto const step = [](tensors<double>& p, auto& opt, int t) {
      p.backward(t);
      opt.step();
      for (std::size_t k = 0; k < p.value.size() && t % 5 == 1; ++k) {
        std::vector<double> h;
        for (double old : opt.template state<1>(std::to_string(k)))
          h.push_back(0.75 * old + 0.25 * (double((h.size() * 13 + k * 5 + std::size_t(t) * 7) % 17) - 3) / 16);
        opt.template set_state<1>(std::to_string(k), std::span<double const>(h));
      }
    };
    auto const rule = configured<ds::sophia>(g);
    check({}, follow_by(step, g, rule));
  });
}
