// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 d: find the bug in this Adam, and fix it.
//
// Symptom: when the gradient changes its sign after 20 steps, p moves in the old direction for 19 more steps. Adam
// should turn after 5. On the curve the loss swings up and down in long waves.
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct adam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, eps, b1, m_unbias, b2, v_unbias; };
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    using descent::power;
    return {lr, eps, beta2, 1 / (1 - power(beta2, t)), beta1, 1 / (1 - power(beta1, t))};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    s.m = k.b1 * s.m + (Real(1) - k.b1) * g;
    s.v = k.b2 * s.v + (Real(1) - k.b2) * g * g;
    return p - k.lr * (s.m * k.m_unbias) / (sqrt(s.v * k.v_unbias) + k.eps);
  }
};
static_assert(descent::update_rule<adam>);
