// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// The heavy ball method (Polyak 1964): momentum with lr inside the buffer. b is the last step, and a new lr affects
/// the momentum only as b forgets the old steps. sgd has lr outside; both are the same while lr is constant.
///
///     g <- g + wd p                                       (decoupled: p <- p - lr wd p instead, with the old p)
///     b <- mu b + lr g                                    (correction: b <- mu lr / lr_ b + lr g, lr_ the last lr)
///     p <- p - b                                          (Nesterov: p <- p - (mu b + lr g))
///
/// `correction` is the momentum correction of Goyal et al. 2017, section 3. With it a changing lr acts as in sgd,
/// except that a step with lr = 0 resets b to zero.
///
/// Nesterov's form takes g at the shifted variable p = w - mu b (Sutskever et al. 2013, eq. 7-8). The literal form
/// (eq. 3-4) stores w and looks ahead from it: b <- mu b + lr g(w - mu b), w <- w - b. While mu is constant, both give
/// the same b, and w = p + mu b. The policy gradient_ahead implements the literal form.
struct heavy_ball {
  /// Learning rate lr, momentum (mu) and weight_decay (wd) at least 0, momentum above 0 with nesterov.
  double lr = 1e-2, momentum = 0.9, weight_decay = 0;
  bool nesterov = false, correction = false, decoupled = false;

  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real lr, keep, mu, wd, decay, nesterov; };  // keep = mu, or mu lr / lr_
  struct memory { double lr_ = 0; };
  static constexpr char const* slots[] = {"b"};

  bool uses(std::size_t) const { return momentum != 0; }

  DESCENT_HD terms<double> at(std::int64_t, memory& old) const {
    terms<double> k{
        lr, momentum, momentum, decoupled ? 0 : weight_decay, decoupled ? lr * weight_decay : 0, nesterov ? 1.0 : 0.0};
    if (correction && old.lr_ > 0) k.keep *= lr / old.lr_;
    old.lr_ = lr;
    return k;
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    Real const step = k.lr * (g + k.wd * p);
    s.b = k.keep * s.b + step;
    return p - k.decay * p - select(k.nesterov > Real(0), k.mu * s.b + step, s.b);
  }

  template <class Real> DESCENT_HD Real ahead(Real p, state<Real> const& s) const { return p - Real(momentum) * s.b; }

  static constexpr field_range<heavy_ball> ranges[] = {
      {&heavy_ball::lr, at_least_0}, {&heavy_ball::momentum, at_least_0}, {&heavy_ball::weight_decay, at_least_0}};
  void check() const {
    detail::require_flag(!correction || momentum != 0, "heavy_ball", "correction", "off without momentum", correction);
    if (nesterov) detail::require(momentum > 0, "heavy_ball", "momentum", "above 0 with nesterov", momentum);
  }
};
static_assert(update_rule<heavy_ball> && has_memory<heavy_ball>);

}  // namespace descent
