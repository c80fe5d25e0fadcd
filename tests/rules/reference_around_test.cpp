// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/policies/average.hpp>
#include <descent/policies/maximize.hpp>
#include <descent/policies/sam.hpp>
#include <descent/rules/adagrad.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/decay.hpp>
#include <descent/schedules/vary.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

/// Policies around rules: sam, lookahead, outer, ema_nesterov and maximize against tests/reference/values_around.txt.

using namespace test::reference;
namespace ds = descent;

namespace {

/// The numbers that follow the word in with=<word>:<number>:<number>; empty if there is another word.
std::vector<double> numbers(golden const& g, std::string const& word) {
  std::istringstream parts(g.options.at("with"));
  std::string part;
  std::vector<double> all;
  std::getline(parts, part, ':');
  if (part != word) return all;
  while (std::getline(parts, part, ':')) all.push_back(std::stod(part));
  return all;
}

/// The cases of the policy that make(g) makes; gradients are sign times those of (p - 2)^2 / 2^k.
template <class Make> void follow_policies(char const* word, int cases, int sign, Make const& make) {
  auto const chosen = [&](golden const& g) { return g.options.at("with").starts_with(word); };
  each_case("values_around.txt", cases, chosen, [&](golden const& g) {
    auto const policy = make(g);
    auto const step = [&](tensors<double>& p, auto& opt, int) {
      auto const slope = [&](std::size_t k, std::size_t i) { return sign * (p.value[k][i] - 2) * 2 / double(1 << k); };
      p.backward_by(slope);
      if constexpr (std::is_same_v<decltype(policy), ds::sam const>) {
        opt.ascend();
        p.backward_by(slope);
      }
      opt.step();
    };
    auto const follows = [&](auto const& rule, tolerance const& allowed) {
      check(allowed, follow_by(step, g, rule, policy));
    };
    CHECK(with_rule(g, follows, named<ds::sgd>{"sgd"}, named<ds::adam>{"adam"}, named<ds::adamw>{"adamw"},
                    named<ds::adagrad>{"adagrad"}));
  });
}

}  // namespace

TEST_CASE("sam follows optax and pytorch_optimizer for 100 steps") {
  follow_policies("sam", 6, 1, [](golden const& g) { return ds::sam{.rho = numbers(g, "sam").at(0)}; });
}

TEST_CASE("lookahead follows optax, pytorch_optimizer and timm for 100 steps") {
  follow_policies("lookahead", 5, 1, [](golden const& g) {
    auto const n = numbers(g, "lookahead");
    return ds::lookahead{.k = int(n.at(0)), .alpha = n.at(1)};
  });
}

TEST_CASE("outer follows PyTorch's SGD on slow weights for 100 steps") {
  follow_policies("outer", 2, 1, [](golden const& g) {
    auto const n = numbers(g, "outer");
    return ds::outer{.every = int(n.at(0)), .lr = n.at(1), .momentum = n.at(2)};
  });
}

TEST_CASE("maximize follows PyTorch's flag for 100 steps") {
  follow_policies("maximize", 3, -1, [](golden const&) { return ds::maximize{}; });
}

TEST_CASE("ema_nesterov follows the authors' steps around PyTorch for 100 steps") {
  auto const chosen = [](golden const& g) { return g.options.at("with").starts_with("ema_nesterov"); };
  each_case("values_around.txt", 3, chosen, [&](golden const& g) {
    auto const n = numbers(g, "ema_nesterov");
    auto const follows = [&](auto const& rule, tolerance const& allowed) {
      tensors<double> p;
      ds::optimizer opt{p.list(), rule,
                        ds::ema_nesterov{.lookahead = n.at(0),
                                         .momentum = n.at(1),
                                         .start = std::int64_t(n.at(2)),
                                         .until = std::int64_t(n.at(3))},
                        ds::learning_rate(ds::linear{.from = rule.lr, .to = n.at(4) * rule.lr, .steps = 100})};
      auto const step = [&](int) {
        p.backward_by([&](std::size_t k, std::size_t i) { return (p.value[k][i] - 2) * 2 / double(1 << k); });
        opt.step();
      };
      check(allowed, compare(g, step, [&](std::size_t k, std::size_t i) { return opt.slow(std::to_string(k))[i]; }));
    };
    CHECK(with_rule(g, follows, named<ds::sgd>{"sgd"}, named<ds::adam>{"adam"}, named<ds::adamw>{"adamw"}));
  });
}
