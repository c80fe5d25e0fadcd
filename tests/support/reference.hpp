// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/optimizer.hpp>

#include <doctest/doctest.h>

#include "files.hpp"
#include "larger.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

/// Rules against recorded trajectories of other libraries; tests/reference/values.txt describes problem and format.
namespace test::reference {

/// The problem of all files but values_matrix.txt: three tensors, their start values, and the gradients of step t.
inline std::vector<descent::shape> const shapes{{5}, {1}, {12}};
inline std::size_t size_of(descent::shape s) { return std::size_t(s.rows * s.columns); }
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

/// The cases of a file in tests/reference, for tensors of these shapes.
inline std::vector<golden> read_goldens(std::string const& file, std::vector<descent::shape> const& of = shapes) {
  std::ifstream in(tests_dir() + "/reference/" + file);
  REQUIRE(in);
  std::vector<golden> all;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word[0] == '#') continue;
    if (word == "case") {
      golden g{line, {}, {}, {}, {}};
      words >> g.rule >> g.peer;
      while (words >> word) g.options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
      all.push_back(g);
    } else {
      REQUIRE(word == "step");
      recorded r{};
      words >> r.step >> word >> r.tensor;
      for (double x; words >> x;) r.values.push_back(x);
      REQUIRE(r.values.size() == size_of(of.at(r.tensor)));
      all.back().steps.push_back(r);
    }
  }
  return all;
}

/// Calls f(case) for the chosen cases of a file; there must be `count` of them.
template <class Chosen, class F>
void each_case(std::string const& file, int count, Chosen const& chosen, F const& f,
               std::vector<descent::shape> const& of = shapes) {
  int cases = 0;
  for (golden const& g : read_goldens(file, of)) {
    if (!chosen(g)) continue;
    INFO(g.line);
    ++cases;
    f(g);
  }
  CHECK(cases == count);
}

inline bool every(golden const&) { return true; }
/// Whether a case needs more than the fields of its rule.
inline bool has_schedule(golden const& g) { return g.options.contains("schedule"); }
inline bool has_more(golden const& g) { return has_schedule(g) || g.options.contains("with"); }

/// Sets one field of a rule; false if the rule has no such field.
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
  FIELD(eps_inside) FIELD(correction) FIELD(normalize_rows) FIELD(adaptive) FIELD(clamp) FIELD(adam)
  FIELD(base_lr) FIELD(amsbound) FIELD(bias_correction)
  FIELD(min_norm) FIELD(paper_weight) FIELD(always) FIELD(averaging) FIELD(max_ratio)
  FIELD(beta2_decay) FIELD(eps1) FIELD(eps2) FIELD(eps_added) FIELD(capped) FIELD(relative) FIELD(decay_by_lr)
  FIELD(rms) FIELD(ns_steps) FIELD(adjust) FIELD(every) FIELD(shampoo_beta) FIELD(max_precondition_dim) FIELD(graft)
#undef FIELD
  if constexpr (requires { rule.coefficients; })
    if (key.size() == 2 && key[0] == 'c') return rule.coefficients.of[0].at(std::size_t(key[1] - '1')) = x, true;
  if constexpr (requires { rule.rule; }) return set(rule.rule, key, x);
  return false;
}

/// The rule with the fields that a case names; the other options of a case are about how its peer ran.
template <class Rule> Rule configured(golden const& g) {
  static std::set<std::string> const no_fields{"schedule", "with", "qr", "bf16", "of"};
  Rule rule;
  for (auto const& [name, text] : g.options) {
    if (no_fields.contains(name)) continue;
    std::string const& key = name;  // INFO makes a lambda, and clang before 16 captures no structured binding
    INFO("option ", key);
    REQUIRE(set(rule, key, std::stod(text)));
  }
  return rule;
}

/// The tensors of a problem, with their start values, and their gradients. p(k, i) is element i of tensor k.
template <class Real> struct tensors {
  std::vector<descent::shape> of;
  std::vector<std::vector<Real>> value, grad;

  explicit tensors(std::vector<descent::shape> s = shapes) : of(std::move(s)), value(of.size()), grad(of.size()) {
    for (std::size_t k = 0; k < of.size(); ++k) {
      for (std::size_t i = 0; i < size_of(of[k]); ++i) value[k].push_back(Real(start(k, i)));
      grad[k].resize(size_of(of[k]));
    }
  }
  /// All tensors that are not empty, named by their numbers.
  descent::parameters<Real> list() {
    descent::parameters<Real> all;
    for (std::size_t k = 0; k < of.size(); ++k)
      if (!value[k].empty()) all.add(std::to_string(k), value[k].data(), grad[k].data(), of[k]);
    return all;
  }
  double operator()(std::size_t k, std::size_t i) const { return double(value[k][i]); }

  /// Sets the gradients to g(k, i), or to those of step t.
  template <class G> void backward_by(G const& g) {
    for (std::size_t k = 0; k < of.size(); ++k)
      for (std::size_t i = 0; i < grad[k].size(); ++i) grad[k][i] = Real(g(k, i));
  }
  void backward(int t) {
    backward_by([t](std::size_t k, std::size_t i) { return gradient(k, i, std::size_t(t)); });
  }
};

/// The largest differences from a case: of values, and of their displacement from the start relative to its length.
struct difference {
  double values = 0, way = 0;
  std::size_t compared = 0;
};
/// Calls step(t) for every step of a case; then now(k, i) is what the case records of element i of tensor k.
template <class Step, class Now> difference compare(golden const& g, Step const& step, Now const& now) {
  difference d;
  for (int t = 1; t <= g.steps.back().step; ++t) {
    step(t);
    for (recorded const& r : g.steps) {
      if (r.step != t) continue;
      double longest = 0, apart = 0;
      for (std::size_t i = 0; i < r.values.size(); ++i) {
        longest = larger(longest, std::abs(r.values[i] - start(r.tensor, i)));
        apart = larger(apart, std::abs(now(r.tensor, i) - r.values[i]));
      }
      d.values = larger(d.values, apart);
      d.way = larger(d.way, apart / std::max(longest, 1e-300));
      d.compared += r.values.size();
    }
  }
  return d;
}

/// Follows a case with the rule; step(p, opt, t) does the work of step t.
template <class Step, class Rule, class... Ps>
difference follow_by(Step const& step, golden const& g, Rule const& rule, Ps... policies) {
  tensors<double> p;
  descent::optimizer opt{p.list(), rule, policies...};
  return compare(g, [&](int t) { step(p, opt, t); }, p);
}

/// Whether a case is one of values_follow.txt, whose gradients follow the values.
inline bool follows_values(golden const& g) { return g.options.contains("of"); }
/// Sets the gradients of a case.
inline void backward_of(golden const& g, tensors<double>& p, int t) {
  if (follows_values(g))
    p.backward_by([&](std::size_t k, std::size_t i) { return (p(k, i) - 2) * 2 / double(1 << k); });
  else p.backward(t);
}

template <class Rule, class... Ps> difference follow(golden const& g, Rule const& rule, Ps... policies) {
  return follow_by([&](auto& p, auto& opt, int t) { backward_of(g, p, t), opt.step(); }, g, rule, policies...);
}

/// The largest allowed differences of a rule from the recorded values. Rules run in double; in float, sizes_test.cpp
/// compares them with the same formulas in double.
struct tolerance { double values = 1e-13, way = 1e-9; };

inline void check(tolerance const& allowed, difference const& d) {
  CHECK(d.compared == 7 * 18);
  CHECK(d.values <= allowed.values);
  CHECK(d.way <= allowed.way);
}
template <class Rule, class... Ps>
void check_follows(tolerance const& allowed, golden const& g, Rule const& rule, Ps... policies) {
  check(allowed, follow(g, rule, policies...));
}

/// A rule with its name in the files.
template <class Rule> struct named {
  char const* name;
  tolerance allowed = {};
};

/// Calls f(rule, tolerance) for the rule of a case, with its fields; false if it is none of these.
template <class F, class... Rules> bool with_rule(golden const& g, F const& f, named<Rules> const&... rules) {
  return ((g.rule == rules.name && (f(configured<Rules>(g), rules.allowed), true)) || ...);
}

/// Follows every case of a file that needs only its rule. Each rule must have a case, and each case a rule. Then each
/// rule follows a case whose gradients follow the values; `elsewhere` rules have theirs in another file.
template <class... Rules>
void follow_all(std::string const& file, std::size_t elsewhere, named<Rules> const&... rules) {
  std::set<std::string> seen, seen_following;
  auto const follow_one = [&](golden const& g) {
    INFO(g.line);
    auto const follows = [&](auto const& rule, tolerance const& allowed) { check_follows(allowed, g, rule); };
    CHECK(with_rule(g, follows, rules...));
    (follows_values(g) ? seen_following : seen).insert(g.rule);
  };
  for (golden const& g : read_goldens(file))
    if (!has_more(g)) follow_one(g);
  for (golden const& g : read_goldens("values_follow.txt"))
    if (g.options.at("of") == file && !has_more(g)) follow_one(g);
  CHECK(seen.size() == sizeof...(Rules));
  CHECK(seen_following.size() == sizeof...(Rules) - elsewhere);
}

}  // namespace test::reference
