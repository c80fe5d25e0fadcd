// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/error.hpp>
#include <descent/rule.hpp>

namespace descent {

/// NovoGrad (Ginsburg et al. 2019, algorithm 1): one v for a layer, which is a tensor of the parameters. As
/// optax.novograd: decay inside the momentum, no factor 1 - b1, and nothing is corrected for bias.
///
///     v <- b2 v + (1 - b2) ||g||^2                        first step of the tensor: v <- ||g||^2
///     m <- b1 m + (g / (sqrt(v) + eps) + wd p)
///     p <- p - lr m
struct novograd {
  double lr = 1e-2, beta1 = 0.9, beta2 = 0.25, eps = 1e-6, weight_decay = 0;

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real lr, b1, gain, wd; };  // gain = 1 / (sqrt(v) + eps)
  template <class Real> struct sums { Real gg; };                 // ||g||^2
  struct memory { double v = -1; };                               // -1: no step yet
  static constexpr char const* slots[] = {"m"};
  static constexpr scope sums_over = scope::tensor;

  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, terms<Real> const&) { return {g * g}; }

  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, beta1, 1, weight_decay}; }

  DESCENT_HD terms<double> at(std::int64_t t, sums<double> const& total, memory& old) const {
    old.v = old.v < 0 ? total.gg : beta2 * old.v + (1 - beta2) * total.gg;
    terms<double> k = at(t);
    k.gain = 1 / (sqrt(old.v) + eps);
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.b1 * s.m + (k.gain * g + k.wd * p);
    return p - k.lr * s.m;
  }

  void check() const {
    detail::check_moments("novograd", *this);
    detail::require(eps > 0, "novograd", "eps", "above 0", eps);
  }
};
static_assert(update_rule<novograd> && has_sums<novograd> && has_memory<novograd>);

}  // namespace descent
