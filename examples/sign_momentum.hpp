// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/rule.hpp>

#include <cstdint>

namespace ds = descent;

// snippet: sign_momentum
/// Momentum on the sign of the gradient:   b <- mu b + sign(g)     p <- p - lr b
struct sign_momentum {
  double lr = 1e-2, momentum = 0.9;

  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real lr, mu; };

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, momentum}; }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    using ds::sign;
    s.b = k.mu * s.b + sign(g);
    return p - k.lr * s.b;
  }
};
static_assert(ds::update_rule<sign_momentum>);
// end
