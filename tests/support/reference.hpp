// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/descent.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

/// Rules against the recorded trajectories of other libraries; tests/reference/values.txt describes problem and format.
namespace test::reference {

constexpr std::size_t sizes[] = {5, 1, 12};
inline double start(std::size_t k, std::size_t i) { return (double((i * 7 + k * 3) % 11) - 5) / 8; }
inline double gradient(std::size_t k, std::size_t i, std::size_t t) {
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

inline std::vector<golden> read_goldens(std::string const& path) {
  std::ifstream in(path);
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
#define FIELD(name)                      \
  if constexpr (requires { rule.name; }) \
    if (key == #name) return rule.name = decltype(rule.name)(x), true;
  FIELD(lr) FIELD(momentum) FIELD(dampening) FIELD(nesterov) FIELD(weight_decay) FIELD(eps)
  FIELD(beta1) FIELD(beta2) FIELD(beta3) FIELD(alpha) FIELD(centered) FIELD(trust) FIELD(reps)
  FIELD(joint_norm) FIELD(lr_decay) FIELD(initial) FIELD(rho) FIELD(amsgrad) FIELD(decoupled)
  FIELD(momentum_decay) FIELD(lambd) FIELD(t0) FIELD(eta_minus) FIELD(eta_plus) FIELD(min_step)
  FIELD(max_step) FIELD(gamma) FIELD(nu) FIELD(nu1) FIELD(nu2) FIELD(final_lr) FIELD(partial)
  FIELD(eps_root) FIELD(d0) FIELD(d_coef) FIELD(power) FIELD(clip) FIELD(safeguard_warmup) FIELD(beta)
  FIELD(max_lr) FIELD(f_min) FIELD(plus) FIELD(lower_bound) FIELD(adapt)
  FIELD(eps_inside) FIELD(correction)
  FIELD(base_lr) FIELD(amsbound) FIELD(bias_correction)
  FIELD(min_norm) FIELD(paper_weight) FIELD(always) FIELD(averaging) FIELD(max_ratio)
#undef FIELD
  if constexpr (requires { rule.rule; }) return set(rule.rule, key, x);
  return false;
}

/// Whether a case needs more than the fields of its rule.
inline bool has_more(golden const& g) { return g.options.contains("schedule") || g.options.contains("with"); }

template <class Rule> Rule configured(golden const& g) {
  Rule rule;
  for (auto const& [key, text] : g.options) {
    if (key == "schedule" || key == "with") continue;
    INFO("option ", key);
    REQUIRE(set(rule, key, std::stod(text)));
  }
  return rule;
}

/// The largest differences to a case: of values, and of their way from the start relative to its
/// length.
struct difference {
  double values = 0, way = 0;
  std::size_t compared = 0;
};

/// Follows a case by the rule; before(t) is called before each step.
template <class Real, class Rule, class Before, class... Ps>
difference follow_with(golden const& g, Rule const& rule, Before const& before, Ps... policies) {
  std::vector<std::vector<Real>> value(3), grad(3);
  descent::parameters<Real> list;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < sizes[k]; ++i) value[k].push_back(Real(start(k, i)));
    grad[k].resize(sizes[k]);
    list.add(std::to_string(k), value[k].data(), grad[k].data(), sizes[k]);
  }
  descent::optimizer opt{list, rule, policies...};
  difference d;
  for (int t = 1; t <= g.steps.back().step; ++t) {
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < sizes[k]; ++i) grad[k][i] = Real(gradient(k, i, std::size_t(t)));
    before(t);
    opt.step();
    for (recorded const& r : g.steps) {
      if (r.step != t) continue;
      double longest = 0, apart = 0;
      for (std::size_t i = 0; i < r.values.size(); ++i) {
        double const error = std::abs(double(value[r.tensor][i]) - r.values[i]);
        longest = std::max(longest, std::abs(r.values[i] - start(r.tensor, i)));
        apart = error <= apart ? apart : error;
      }
      d.values = std::max(d.values, apart);
      d.way = std::max(d.way, apart / std::max(longest, 1e-300));
      d.compared += r.values.size();
    }
  }
  return d;
}

template <class Real, class Rule, class... Ps>
difference follow(golden const& g, Rule const& rule, Ps... policies) {
  return follow_with<Real>(g, rule, [](int) {}, policies...);
}

/// How far a rule in double and in float may be from the recorded values.
struct tolerance {
  double in_double = 1e-13, way = 1e-9, in_float = 1e-5;
};
template <class Rule> inline constexpr tolerance allowed{};
/// The rule's name in the file.
template <class Rule> inline constexpr char const* name_of = nullptr;

/// Follows every case of a file that needs no more than its rule; each rule has a case, and each case a rule.
template <class... Rules> void follow_all(std::string const& file) {
  std::set<std::string> seen;
  for (golden const& g : read_goldens(std::string(DESCENT_TESTS_DIR "/reference/") + file)) {
    if (has_more(g)) continue;
    INFO(g.line);
    bool found = false;
    auto const one = [&]<class Rule>(Rule) {
      if (g.rule != name_of<Rule>) return;
      found = true;
      Rule const rule = configured<Rule>(g);
      difference const exact = follow<double>(g, rule), rounded = follow<float>(g, rule);
      CHECK(exact.compared == g.steps.size() / 3 * 18);
      CHECK(exact.values <= allowed<Rule>.in_double);
      CHECK(exact.way <= allowed<Rule>.way);
      CHECK(rounded.values <= allowed<Rule>.in_float);
    };
    (one(Rules{}), ...);
    CHECK(found);
    seen.insert(g.rule);
  }
  CHECK(seen.size() == sizeof...(Rules));
}

}  // namespace test::reference
