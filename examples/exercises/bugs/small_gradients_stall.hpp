// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 14 b: find the bug in this Adam, and fix it.
//
// Symptom: Adam should not care how large gradients are. But a layer whose gradients are 1e-6 takes steps of 0.01 lr
// instead of 0.99 lr, and hardly learns.
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct adam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, m_unbias, v_unbias, eps; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    using descent::power;
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, 1 / (1 - power(beta1, t)), 1 / (1 - power(beta2, t)), eps};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p - k.lr * (s.m * k.m_unbias) / sqrt(s.v * k.v_unbias + k.eps);
  }
};
static_assert(descent::update_rule<adam>);
