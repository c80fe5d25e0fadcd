// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/policies/clip.hpp>
#include <descent/rules/adabelief.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adan.hpp>
#include <descent/rules/adopt.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/larc.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/layerwise.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/madgrad.hpp>
#include <descent/rules/novograd.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <cstdio>
#include <span>
#include <string>
#include <vector>

using namespace test::reference;
namespace ds = descent;

TEST_CASE("nine rules follow timm, and the trust ratio around adam and rmsprop optax, for 100 steps") {
  follow_all("values_timm.txt", 0, named<ds::lars>{"lars"}, named<ds::larc<ds::sgd>>{"larc"}, named<ds::lamb>{"lamb"},
             named<ds::novograd>{"novograd"}, named<ds::madgrad>{"madgrad"}, named<ds::adopt>{"adopt"},
             named<ds::adan>{"adan"}, named<ds::adabelief>{"adabelief"}, named<ds::lion>{"lion"},
             named<ds::layerwise<ds::adam>>{"layerwise_adam"}, named<ds::layerwise<ds::rmsprop>>{"layerwise_rmsprop"});
}

TEST_CASE("lamb behind a clipped norm of all gradients follows timm, whose Lamb clips by itself") {
  auto const clips = [](golden const& g) { return g.rule == "lamb" && g.options.contains("with"); };
  each_case("values_timm.txt", 3, clips, [](golden const& g) {
    std::string const with = g.options.at("with");
    REQUIRE(with.starts_with("clip_norm:"));
    ds::clip_norm const clip{std::stod(with.substr(10))};
    auto const rule = configured<ds::lamb>(g);
    check_follows({}, g, rule, clip);
    CHECK(follow(g, rule).values >= 1e-4);
  });
}

TEST_CASE("sgd behind adaptive clipping of rows follows timm's adaptive_clip_grad") {
  auto const clips = [](golden const& g) { return g.rule == "sgd" && g.options.contains("with"); };
  auto const agrees = [](golden const& g) {
    double c = 0, eps = 0;
    REQUIRE(std::sscanf(g.options.at("with").c_str(), "agc:%lf:%lf", &c, &eps) == 2);
    ds::clip_adaptive const clip{.c = c, .eps = eps};
    auto const rule = configured<ds::sgd>(g);
    tensors<double> p({{5}, {1}, {3, 4}});
    ds::optimizer opt{p.list(), rule, clip};
    check({}, compare(g, [&](int t) { backward_of(g, p, t), opt.step(); }, p));
    CHECK(follow(g, rule, clip).values >= 1e-4);  // the matrix as one unit
  };
  each_case("values_timm.txt", 2, clips, agrees);
  each_case("values_follow.txt", 1, clips, agrees);
}

TEST_CASE("rmsprop with eps inside and v at 1 follows timm's RMSpropTF with lr outside the buffer") {
  auto const about_rmsprop = [](golden const& g) { return g.rule == "rmsprop"; };
  each_case("values_timm.txt", 2, about_rmsprop, [](golden const& g) {
    REQUIRE(g.options.at("with") == "v:1");
    auto const step = [](tensors<double>& p, auto& opt, int t) {
      for (std::size_t k = 0; t == 1 && k < p.value.size(); ++k) {
        std::vector<double> const ones(p.value[k].size(), 1);
        opt.template set_state<0>(std::to_string(k), std::span<double const>(ones));
      }
      p.backward(t);
      opt.step();
    };
    auto const rule = configured<ds::rmsprop>(g);
    check({}, follow_by(step, g, rule));
  });
}
