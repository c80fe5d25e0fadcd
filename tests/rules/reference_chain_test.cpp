// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/policies/clip.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/rules/yogi.hpp>
#include <descent/transforms/chain.hpp>
#include <descent/transforms/parts.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

using namespace test::reference;
namespace ds = descent;

TEST_CASE("chains follow optax.chain for 100 steps") {
  each_case("values_chain.txt", 8, every, [](golden const& g) {
    bool found = false;
    auto const option = [&](char const* key) { return std::stod(g.options.at(key)); };
    auto const follows = [&](char const* name, auto const& make) {
      if (g.rule != name) return;
      found = true;
      check_follows({}, g, make());
    };
    double const lr = option("lr");
    follows("clip-l2-adam",
            [&] { return ds::chain{ds::clip_value{option("c")}, ds::l2{option("weight_decay")}, ds::adam{.lr = lr}}; });
    follows("l2-clip-adam",
            [&] { return ds::chain{ds::l2{option("weight_decay")}, ds::clip_value{option("c")}, ds::adam{.lr = lr}}; });
    follows("sign-scale-momentum", [&] {
      return ds::chain{ds::gradient_sign{}, ds::gradient_scale{option("factor")}, ds::sgd{.lr = lr, .momentum = 0.9}};
    });
    follows("trace-yogi", [&] {
      return ds::chain{ds::gradient_trace{option("decay"), option("nesterov") != 0}, ds::yogi{.lr = lr}};
    });
    follows("ema-sgd", [&] { return ds::chain{ds::gradient_ema{option("decay")}, ds::sgd{.lr = lr}}; });
    follows("raw-ema-lamb", [&] { return ds::chain{ds::gradient_ema{option("decay"), false}, ds::lamb{.lr = lr}}; });
    follows("rms-adam", [&] { return ds::chain{ds::clip_rms{option("max")}, ds::adam{.lr = lr}}; });
    follows("l2-normalize-momentum", [&] {
      return ds::chain{ds::l2{option("weight_decay")},
                       ds::normalize<ds::scope::model>{.scale = option("scale"), .eps = option("eps")},
                       ds::sgd{.lr = lr, .momentum = 0.9}};
    });
    CHECK(found);
  });
}
