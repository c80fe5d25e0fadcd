// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

struct adagrad {
  double lr = 1e-2, eps = 1e-10;

  template <class Real> struct state { Real s; };
  template <class Real> struct terms { Real lr, eps; };
  static constexpr char const* slots[] = {"s"};

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, eps}; }

  template <class Real>
  DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using descent::sqrt;
    s.s = s.s + g * g;
    return p - k.lr * g / (sqrt(s.s) + k.eps);
  }
};
static_assert(descent::update_rule<adagrad>);
