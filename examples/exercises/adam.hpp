// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 6: Adam with bias correction, as a rule of the library.
//
// Write the state, the terms, at(t) and update().
//
//     m <- b1 m + (1 - b1) g
//     v <- b2 v + (1 - b2) g^2
//     p <- p - lr m^ / (sqrt(v^) + eps)        m^ = m / (1 - b1^t)     v^ = v / (1 - b2^t)
//
// Hint: the state has the members m and v, in this order. at(t) is called with t = 1 for the first step and computes in
// double what all elements share: power(beta1, t) is b1^t.
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct adam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

  template <class Real> struct state {};
  template <class Real> struct terms {};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    using descent::power;
    return {};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    return p;
  }
};
static_assert(descent::update_rule<adam>);
