// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>
#include <vector>

/// A step as a plain loop, without the library: one tensor, element after element.
namespace naive {

template <class Rule, class Real> using terms = typename Rule::template terms<Real>;
template <class Rule, class Real> using states = std::vector<typename Rule::template state<Real>>;

/// Terms in double, rounded to the type of the arithmetic.
template <class Rule, class Real> terms<Rule, Real> rounded(terms<Rule, double> const& k) {
  terms<Rule, Real> r;
  for (std::size_t i = 0; i < descent::detail::members<Rule::template terms>; ++i)
    reinterpret_cast<Real*>(&r)[i] = Real(reinterpret_cast<double const*>(&k)[i]);
  return r;
}

template <class Rule, class Real>
void step(terms<Rule, double> const& k, std::vector<Real>& p, std::vector<Real> const& g, states<Rule, Real>& s,
          double factor = 1) {
  auto const r = rounded<Rule, Real>(k);
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = Rule::update(p[i], g[i] * Real(factor), s[i], r);
}

}  // namespace naive
