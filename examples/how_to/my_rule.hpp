// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

namespace ds = descent;

// snippet: my_rule
/// RMSprop without squares:   v <- b v + (1 - b) |g|     p <- p - lr g / (v + eps)
struct my_rule {
  double lr = 1e-3, beta = 0.9, eps = 1e-8;

  template <class Real> struct state { Real v; };
  template <class Real> struct terms { Real lr, b, a, eps; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, beta, 1 - beta, eps}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using ds::abs;
    s.v = k.b * s.v + k.a * abs(g);
    return p - k.lr * g / (s.v + k.eps);
  }
};
static_assert(ds::update_rule<my_rule>);
// end
