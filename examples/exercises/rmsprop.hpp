// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 5: RMSprop, as a rule of the library.
//
// Adagrad's sum only grows, so its steps only shrink. RMSprop replaces it by a moving average. Write the terms, at()
// and the two lines of update().
//
//     v <- alpha v + (1 - alpha) g^2
//     p <- p - lr g / (sqrt(v) + eps)
//
// Hint: 1 - alpha does not depend on the element, so make it a term: Real lr, a, b, eps with b = 1 - a.
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct rmsprop {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8;

  template <class Real> struct state { Real v; };
  template <class Real> struct terms {};  // your members
  static constexpr char const* slots[] = {"v"};

  DESCENT_HD terms<double> at(std::int64_t) const { return {}; }  // your values, in the order of the members

  template <class Real>
  DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    // your line: s.v
    return p;  // your line: the new p
  }
};
static_assert(descent::update_rule<rmsprop>);
