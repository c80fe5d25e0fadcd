// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/descent.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

using namespace test::reference;
namespace ds = descent;

TEST_CASE("chains follow optax.chain for 100 steps") {
  int cases = 0;
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values_chain.txt")) {
    INFO(g.line);
    auto const option = [&](char const* key) { return std::stod(g.options.at(key)); };
    auto const follows = [&](char const* name, auto const& make) {
      if (g.rule != name) return;
      ++cases;
      auto const rule = make();
      difference const exact = follow<double>(g, rule), rounded = follow<float>(g, rule);
      CHECK(exact.compared == 7 * 18);
      CHECK(exact.way <= 1e-9);
      CHECK(exact.values <= 1e-13);
      CHECK(rounded.values <= 1e-5);
    };
    double const lr = option("lr");
    follows("clip-l2-adam", [&] {
      return ds::chain{ds::clip_value{option("c")}, ds::l2{option("weight_decay")}, ds::adam{.lr = lr}};
    });
    follows("l2-clip-adam", [&] {
      return ds::chain{ds::l2{option("weight_decay")}, ds::clip_value{option("c")}, ds::adam{.lr = lr}};
    });
    follows("sign-scale-momentum", [&] {
      return ds::chain{ds::gradient_sign{}, ds::gradient_scale{option("factor")}, ds::sgd{.lr = lr, .momentum = 0.9}};
    });
    follows("trace-yogi", [&] {
      return ds::chain{ds::gradient_trace{option("decay"), option("nesterov") != 0}, ds::yogi{.lr = lr}};
    });
    follows("ema-sgd", [&] { return ds::chain{ds::gradient_ema{option("decay")}, ds::sgd{.lr = lr}}; });
    follows("raw-ema-lamb", [&] {
      return ds::chain{ds::gradient_ema{option("decay"), false}, ds::lamb{.lr = lr}};
    });
    follows("rms-adam", [&] { return ds::chain{ds::clip_rms{option("max")}, ds::adam{.lr = lr}}; });
    follows("l2-normalize-momentum", [&] {
      return ds::chain{ds::l2{option("weight_decay")},
                       ds::normalize<ds::scope::model>{.scale = option("scale"), .eps = option("eps")},
                       ds::sgd{.lr = lr, .momentum = 0.9}};
    });
  }
  CHECK(cases == 8);
}
