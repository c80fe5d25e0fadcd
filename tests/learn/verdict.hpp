// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// What the hidden tests of the exercises share. A test prints one sentence and fails, or prints nothing.
namespace learn {

[[noreturn]] inline void wrong(std::string const& sentence) {
  std::puts(sentence.c_str());
  std::exit(1);
}

inline std::string number(double x) {
  if (std::isnan(x)) return "NaN";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", x);
  return digits;
}

/// Relative to the larger number. NaN equals NaN.
inline bool same(double x, double y, double tolerance = 1e-9) {
  if (!std::isfinite(x) || !std::isfinite(y)) return std::isnan(x) ? std::isnan(y) : x == y;
  return std::abs(x - y) <= tolerance * std::max({std::abs(x), std::abs(y), 1e-6});
}

/// A number after 0, 1, 2, ... steps.
using path = std::vector<double>;

/// A typical mistake: the path that it leads to, and the question that leads away from it.
struct mistake {
  std::string question;
  path values;
};

inline bool same(path const& x, path const& y, double tolerance = 1e-9) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](double a, double b) { return same(a, b, tolerance); });
}

/// The path of p if step(p, g, t) makes step t = 1, 2, ... with each of the gradients.
template <class Step> path walk(double p, path const& gradients, Step step) {
  path all{p};
  for (double const g : gradients) {
    step(p, g, std::int64_t(all.size()));
    all.push_back(p);
  }
  return all;
}

/// Requires the right path. Otherwise says where the paths part and by how much, and asks the question of the mistake
/// whose path this is, if any. `before` begins the sentence.
inline void require_path(std::string const& name, path const& got, path const& want,
                         std::vector<mistake> const& mistakes = {}, std::string const& before = "",
                         double tolerance = 1e-9) {
  if (same(got, want, tolerance)) return;
  std::size_t t = 0;
  while (t < got.size() && t < want.size() && same(got[t], want[t], tolerance)) ++t;
  std::string const step = std::to_string(t);
  std::string sentence =
      before + "after step " + step + ", " + name + " is " + number(got[t]) + " and should be " + number(want[t]);
  if (t > 0 && std::isfinite(got[t]) && want[t] != want[t - 1]) {
    double const ratio = (got[t] - got[t - 1]) / (want[t] - want[t - 1]);
    if (ratio == 0) sentence += ": it did not move";
    else if (ratio < 0) sentence += ": it moved the wrong way";
    else sentence += ": it moved " + number(ratio) + " times as far as it should";
  }
  for (mistake const& one : mistakes)
    if (same(got, one.values, tolerance)) wrong(sentence + "; " + one.question);
  wrong(sentence + ".");
}

/// What a rule makes of one element.
struct record {
  path p;
  std::vector<path> state;  // of each member
};

template <class Rule> record run(Rule const& rule, double start, path const& gradients) {
  constexpr std::size_t members = descent::detail::members<Rule::template state>;
  typename Rule::template state<double> s{};
  record r{{}, std::vector<path>(members, path{0})};
  r.p = walk(start, gradients, [&](double& p, double g, std::int64_t t) {
    p = Rule::update(p, g, s, rule.at(t));
    if constexpr (members > 0)
      for (std::size_t i = 0; i < members; ++i) r.state[i].push_back(descent::detail::real_at<double>(s, i));
  });
  return r;
}

/// Gradients that no mistake survives: of both signs, large and small.
inline path const gradients{2, -1, 0.5, 3, 0.01, -0.25, 1.5, -2};

}  // namespace learn
