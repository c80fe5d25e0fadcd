// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
//
// Exercise 7: L2 or decoupled decay.
//
// This is Adam with L2 decay: the decay is part of the gradient, so it is divided by sqrt(v^), and weights with large
// gradients hardly decay. Turn it into AdamW, which keeps the decay out of both averages:
//
//     m <- b1 m + (1 - b1) g
//     v <- b2 v + (1 - b2) g^2
//     p <- p - lr (m^ / (sqrt(v^) + eps) + wd p)
//
// Hint: delete one line and extend another.
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct adamw {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;

  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr, b1, a1, b2, a2, m_unbias, v_unbias, eps, wd; };  // a = 1 - b
  static constexpr char const* slots[] = {"m", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const m_unbias = 1 / (1 - descent::power(beta1, t)), v_unbias = 1 / (1 - descent::power(beta2, t));
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, m_unbias, v_unbias, eps, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    g = g + k.wd * p;
    s.m = k.b1 * s.m + k.a1 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p - k.lr * (s.m * k.m_unbias / (sqrt(s.v * k.v_unbias) + k.eps));
  }
};
static_assert(descent::update_rule<adamw>);
