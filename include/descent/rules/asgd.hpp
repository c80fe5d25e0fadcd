// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// ASGD: averaged stochastic gradient descent (Polyak & Juditsky 1992), with the decay and the rate of Bottou's and
/// Xu's (2011) programs, as torch.optim.ASGD. ax is the mean of the parameters since update t0; until then it is the
/// parameter itself. swap_average() uses it; the update does not.
///
///     g  <- g + wd p
///     p  <- (1 - lambd eta) p - eta g                     eta = lr / (1 + lambd lr (t - 1))^alpha
///     ax <- ax + mu (p - ax)                              mu  = 1 / max(1, t - 1 - t0)
///
/// A schedule of lr takes effect at once; PyTorch's eta follows lr one step later.
struct asgd {
  /// Learning rate lr; lambd, the decay of p; alpha, the exponent of the decay of eta; t0, the update at which
  /// averaging starts; weight_decay (wd): all at least 0.
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;

  template <class Real> struct state { Real ax; };
  template <class Real> struct terms { Real eta, keep, mu, wd; };  // keep = 1 - lambd eta
  static constexpr char const* slots[] = {"ax"};
  static constexpr bool step_needs_p = true;

  DESCENT_HD terms<double> at(std::int64_t t) const {
    double const before = double(t - 1), eta = lr / ::pow(1 + lambd * lr * before, alpha);
    return {eta, 1 - lambd * eta, 1 / max(1.0, before - t0), weight_decay};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    p = k.keep * p - k.eta * g;
    s.ax = select(k.mu == Real(1), p, s.ax + k.mu * (p - s.ax));
    return p;
  }

  template <class Real> DESCENT_HD Real averaged(Real, state<Real> const& s) const { return s.ax; }

  static constexpr field_range<asgd> ranges[] = {{&asgd::lr, at_least_0}, {&asgd::lambd, at_least_0},
                                                 {&asgd::alpha, at_least_0},
                                                 {&asgd::t0, at_least_0_or_infinite},
                                                 {&asgd::weight_decay, at_least_0}};
};
static_assert(update_rule<asgd>);

}  // namespace descent
