// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/all_rules.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

/// Rules against PyTorch and optax: tests/reference/values.txt, whose header describes problem and
/// format.

namespace ds = descent;

namespace {

constexpr std::size_t sizes[] = {5, 1, 12};
double start(std::size_t k, std::size_t i) { return (double((i * 7 + k * 3) % 11) - 5) / 8; }
double gradient(std::size_t k, std::size_t i, std::size_t t) {
  return (double((i * 37 + t * 101 + k * 59) % 257) - 128) / 256;
}

struct recorded {
  int step;
  std::size_t tensor;
  std::vector<double> values;
};
struct golden {
  std::string line, rule, peer;
  std::map<std::string, std::string> options;
  std::vector<recorded> steps;
};

std::vector<golden> read_goldens() {
  std::ifstream in(DESCENT_TESTS_DIR "/reference/values.txt");
  REQUIRE(in);
  std::vector<golden> all;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word[0] == '#') continue;
    if (word == "case") {
      golden g{line, {}, {}, {}, {}};
      words >> g.rule >> g.peer;
      while (words >> word)
        g.options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
      all.push_back(g);
    } else {
      REQUIRE(word == "step");
      recorded r{};
      words >> r.step >> word >> r.tensor;
      for (double x; words >> x;) r.values.push_back(x);
      REQUIRE(r.values.size() == sizes[r.tensor]);
      all.back().steps.push_back(r);
    }
  }
  return all;
}

/// Sets one field of any rule; false if the rule has none of that name.
template <class Rule> bool set(Rule& rule, std::string const& key, double x) {
#define FIELD(spelling, name)            \
  if constexpr (requires { rule.name; }) \
    if (key == spelling) return rule.name = decltype(rule.name)(x), true;
  FIELD("lr", lr)
  FIELD("momentum", momentum)
  FIELD("dampening", dampening)
  FIELD("nesterov", nesterov)
  FIELD("weight_decay", weight_decay)
  FIELD("beta1", beta1)
  FIELD("beta2", beta2)
  FIELD("eps", eps)
  FIELD("alpha", alpha)
  FIELD("centered", centered)
  FIELD("trust_coefficient", trust)
  FIELD("reps_rel", reps)
#undef FIELD
  return key == "eps_root" && x == 0;
}

template <class Rule> Rule configured(golden const& g) {
  Rule rule;
  for (auto const& [key, text] : g.options) {
    if (key == "schedule" || (key == "init_step" && text == "heuristic")) continue;
    INFO("option ", key);
    REQUIRE(set(rule, key, std::stod(text)));
  }
  if constexpr (requires { rule.joint_norm; }) rule.joint_norm = true;  // as optax
  return rule;
}

template <class Rule> constexpr char const* name_of = nullptr;
template <> constexpr char const* name_of<ds::sgd> = "sgd";
template <> constexpr char const* name_of<ds::adam> = "adam";
template <> constexpr char const* name_of<ds::adamw> = "adamw";
template <> constexpr char const* name_of<ds::rmsprop> = "rmsprop";
template <> constexpr char const* name_of<ds::lion> = "lion";
template <> constexpr char const* name_of<ds::lamb> = "lamb";
template <> constexpr char const* name_of<ds::lars> = "lars";
template <> constexpr char const* name_of<ds::dog> = "dog";

/// The largest differences to a case: of values, and of their way from the start relative to its
/// length.
struct difference {
  double values = 0, way = 0;
  std::size_t compared = 0;
};

template <class Real, class Rule, class... Ps>
difference follow(golden const& g, Rule const& rule, Ps... policies) {
  std::vector<std::vector<Real>> value(3), grad(3);
  ds::parameters<Real> list;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < sizes[k]; ++i) value[k].push_back(Real(start(k, i)));
    grad[k].resize(sizes[k]);
    list.add(std::to_string(k), value[k].data(), grad[k].data(), sizes[k]);
  }
  ds::optimizer opt{list, rule, policies...};
  difference d;
  for (int t = 1; t <= 20; ++t) {
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) grad[k][i] = Real(gradient(k, i, std::size_t(t)));
    opt.step();
    for (recorded const& r : g.steps) {
      if (r.step != t) continue;
      double longest = 0, apart = 0;
      for (std::size_t i = 0; i < r.values.size(); ++i) {
        longest = std::max(longest, std::abs(r.values[i] - start(r.tensor, i)));
        apart = std::max(apart, std::abs(double(value[r.tensor][i]) - r.values[i]));
      }
      d.values = std::max(d.values, apart);
      d.way = std::max(d.way, apart / longest);
      d.compared += r.values.size();
    }
  }
  return d;
}

template <class Real, class Rule> difference follow(golden const& g) {
  Rule const rule = configured<Rule>(g);
  if (!g.options.contains("schedule")) return follow<Real>(g, rule);
  REQUIRE(g.options.at("schedule") == "warmup5_cosine10");
  if constexpr (std::is_same_v<Rule, ds::adamw>)
    return follow<Real>(
        g, rule, ds::learning_rate(ds::warmup<ds::cosine>{5, {.peak = rule.lr, .steps = 10}}));
  else return {1, 1, 0};
}

/// Calls f<Rule>() for the rule of the case; false if there is none.
template <class F> bool with_rule(std::string const& name, F f) {
  bool found = false;
  auto const one = [&]<class Rule>(Rule) {
    if (name == name_of<Rule>) found = true, f.template operator()<Rule>();
  };
  one(ds::sgd{}), one(ds::adam{}), one(ds::adamw{}), one(ds::rmsprop{});
  one(ds::lion{}), one(ds::lamb{}), one(ds::lars{}), one(ds::dog{});
  return found;
}

}  // namespace

TEST_CASE("every case of PyTorch and optax is followed in double, but for rounding") {
  for (golden const& g : read_goldens()) {
    INFO(g.line);
    REQUIRE(with_rule(g.rule, [&]<class Rule>() {
      difference const d = follow<double, Rule>(g);
      CHECK(d.compared == 5 * 18);
      CHECK(d.values <= 1e-14);
      CHECK(d.way <= 1e-10);
    }));
  }
}

TEST_CASE("every case of PyTorch and optax is followed in float, as far as 20 roundings allow") {
  for (golden const& g : read_goldens()) {
    INFO(g.line);
    REQUIRE(with_rule(g.rule, [&]<class Rule>() { CHECK(follow<float, Rule>(g).values <= 2e-6); }));
  }
}

TEST_CASE("there is a case for each of the eight rules") {
  std::set<std::string> rules;
  for (golden const& g : read_goldens())
    rules.insert(g.rule + " " + g.peer.substr(0, g.peer.find('-')));
  CHECK(rules == std::set<std::string>{"adam torch", "adamw torch", "dog optax", "lamb optax",
                                       "lars optax", "lion optax", "rmsprop torch", "sgd torch"});
}
