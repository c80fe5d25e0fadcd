// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <descent/descent.hpp>
#include <descent/rules/adagrad.hpp>

#include <doctest/doctest.h>

#include "support/reference.hpp"

#include <string>
#include <type_traits>
#include <vector>

/// Policies around rules: sam, lookahead and maximize against tests/reference/values_around.txt.

using namespace test::reference;
namespace ds = descent;

namespace {

/// The largest difference to a case whose gradients are sign times those of (p - 2)^2 / 2^k.
template <class Real, class Rule, class Policy>
double farthest(golden const& g, Rule const& rule, Policy const& policy, double sign) {
  std::vector<std::vector<Real>> p(3), grad(3);
  ds::parameters<Real> list;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < sizes[k]; ++i) p[k].push_back(Real(start(k, i)));
    grad[k].resize(sizes[k]);
    list.add(std::to_string(k), p[k].data(), grad[k].data(), sizes[k]);
  }
  ds::optimizer opt{list, rule, policy};
  auto const backward = [&] {
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) grad[k][i] = Real(sign) * (p[k][i] - 2) * 2 / Real(1 << k);
  };
  double most = 0;
  std::size_t compared = 0;
  for (int t = 1; t <= 100; ++t) {
    backward();
    if constexpr (std::is_same_v<Policy, ds::sam>) {
      opt.ascend();
      backward();
    }
    opt.step();
    for (recorded const& r : g.steps) {
      if (r.step != t) continue;
      for (std::size_t i = 0; i < r.values.size(); ++i, ++compared) {
        double const error = std::abs(double(p[r.tensor][i]) - r.values[i]);
        most = error <= most ? most : error;
      }
    }
  }
  CHECK(compared == 7 * 18);
  return most;
}

/// Numbers that follow the word in with=<word>:<number>:<number>; none where another word stands there.
std::vector<double> numbers(golden const& g, std::string const& word) {
  std::istringstream parts(g.options.at("with"));
  std::string part;
  std::vector<double> all;
  std::getline(parts, part, ':');
  if (part != word) return all;
  while (std::getline(parts, part, ':')) all.push_back(std::stod(part));
  return all;
}

/// The cases of a policy that make(g) makes, which is nothing where a case has another one.
template <class Make> void follow_policies(char const* word, int cases, double sign, Make const& make) {
  for (golden const& g : read_goldens(DESCENT_TESTS_DIR "/reference/values_around.txt")) {
    if (!g.options.at("with").starts_with(word)) continue;
    INFO(g.line);
    auto const follows = [&]<class Rule>(char const* name, Rule) {
      if (g.rule != name) return;
      --cases;
      auto const rule = configured<Rule>(g);
      CHECK(farthest<double>(g, rule, make(g), sign) <= 1e-13);
      CHECK(farthest<float>(g, rule, make(g), sign) <= 1e-5);
    };
    follows("sgd", ds::sgd{}), follows("adam", ds::adam{}), follows("adamw", ds::adamw{});
    follows("adagrad", ds::adagrad{});
  }
  CHECK(cases == 0);
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

TEST_CASE("maximize follows PyTorch's flag for 100 steps") {
  follow_policies("maximize", 3, -1, [](golden const&) { return ds::maximize{}; });
}
