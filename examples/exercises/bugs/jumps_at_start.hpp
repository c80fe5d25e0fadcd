// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 a: find the bug in this Adam, and fix it.
//
// Symptom: with a constant gradient every step should be lr long. But step 1 is 3.2 lr, step 10 is 6.5 lr, and step
// 1000 is still 1.26 lr. On the curve the loss jumps up at the start.
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct adam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, eps; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, beta1, 1 - beta1, beta2, 1 - beta2, eps}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p - k.lr * s.m / (sqrt(s.v) + k.eps);
  }
};
static_assert(descent::update_rule<adam>);
