// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <cstddef>
#include <cstdint>

namespace test {

/// A rule whose state has a count: p falls by lr times the mean of the element's gradients that are not 0, which n
/// counts.
struct mean_descent {
  double lr = 0.25;

  template <class Real> struct state { Real sum, n; };
  template <class Real> struct terms { Real lr; };
  static constexpr char const* slots[] = {"sum", "n"};
  static constexpr bool counts(std::size_t slot) { return slot == 1; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::select;
    Real const sum = s.sum + g, n = s.n + Real(1);
    auto const none = g == Real(0);
    s = {select(none, s.sum, sum), select(none, s.n, n)};
    return select(none, p, p - k.lr * (sum / n));
  }
};
static_assert(descent::update_rule<mean_descent> && descent::has_counts<mean_descent>);

}  // namespace test
