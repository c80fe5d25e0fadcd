// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 c: find the bug in this AdamW, and fix it.
//
// Symptom: with lr = 0.001 and weight_decay = 0.1, a weight of 1 whose gradient is 0 should be 0.990 after 100 steps.
// It is 0.99999. On the curve the norm of the weights grows as if there were no decay.
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct adamw {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.1;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, m_unbias, v_unbias, eps, decay; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const m_unbias = 1 / (1 - descent::power(beta1, t)), v_unbias = 1 / (1 - descent::power(beta2, t));
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, m_unbias, v_unbias, eps, lr * weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p - k.lr * (s.m * k.m_unbias / (sqrt(s.v * k.v_unbias) + k.eps) + k.decay * p);
  }
};
static_assert(descent::update_rule<adamw>);
