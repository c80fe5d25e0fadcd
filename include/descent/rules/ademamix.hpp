// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// AdEMAMix: Adam with a second, slow momentum (Pagliardini, Ablin & Grangier 2024, algorithm 1), as
/// optax.contrib.ademamix, without bias correction of m2. The paper lets alpha and beta3 grow over the first steps;
/// here they are constant unless vary<&ademamix::alpha>(schedule) and vary<&ademamix::beta3>(schedule) are given.
///
///     m1 <- b1 m1 + (1 - b1) g
///     m2 <- b3 m2 + (1 - b3) g
///     v  <- b2 v + (1 - b2) g^2
///     p  <- p - lr ((m1^ + alpha m2) / (sqrt(v^) + eps) + wd p)          x^ = x / (1 - b^t)
struct ademamix {
  /// Learning rate lr; decay rates beta1 of m1, beta2 of v and beta3 of m2, in [0, 1); eps above 0; alpha, the weight
  /// of m2, and weight_decay (wd) at least 0.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, beta3 = 0.9999, alpha = 5, eps = 1e-8, weight_decay = 0;

  template <class Real> struct state { Real m1, m2, v; };
  template <class Real> struct terms {  // a = 1 - b
    Real lr, b1, a1, b2, a2, b3, a3, alpha, m1_unbias, v_unbias, eps, wd;
  };
  static constexpr char const* slots[] = {"m1", "m2", "v"};

  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {lr, beta1, 1 - beta1, beta2, 1 - beta2, beta3, 1 - beta3, alpha, 1 / (1 - power(beta1, t)),
            1 / (1 - power(beta2, t)), eps, weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m1 = k.b1 * s.m1 + k.a1 * g;
    s.m2 = k.b3 * s.m2 + k.a3 * g;
    s.v = k.b2 * s.v + k.a2 * g * g;
    return p - k.lr * ((s.m1 * k.m1_unbias + k.alpha * s.m2) / (sqrt(s.v * k.v_unbias) + k.eps) + k.wd * p);
  }

  static constexpr field_range<ademamix> ranges[] = {{&ademamix::lr, at_least_0},
                                                     {&ademamix::beta1, below_1},
                                                     {&ademamix::beta2, below_1},
                                                     {&ademamix::beta3, below_1},
                                                     {&ademamix::alpha, at_least_0},
                                                     {&ademamix::eps, above_0},
                                                     {&ademamix::weight_decay, at_least_0}};
};
static_assert(update_rule<ademamix>);

}  // namespace descent
