// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct rmsprop {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8;

  template <class Real> struct state { Real v; };
  template <class Real> struct terms { Real lr, a, b, eps; };
  static constexpr char const* slots[] = {"v"};

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, alpha, 1 - alpha, eps}; }

  template <class Real>
  DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    s.v = k.a * s.v + k.b * g * g;
    return p - k.lr * g / (sqrt(s.v) + k.eps);
  }
};
static_assert(descent::update_rule<rmsprop>);
