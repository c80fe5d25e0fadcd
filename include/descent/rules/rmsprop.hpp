// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/rule.hpp>

namespace descent {

/// RMSprop (Tieleman & Hinton 2012, lecture 6e), optionally centered (Graves 2013, eq. 38-45) and with momentum, as
/// torch.optim.RMSprop, with eps outside the root and lr outside the buffer. `eps_inside` and `lr_inside` put them
/// inside, as in optax and TensorFlow. With `lr_inside`, b <- mu b + lr g / ..., p <- p - b: a new lr affects the
/// momentum only as b forgets the old steps. TensorFlow's `initial` is 1.
///
///     g  <- g + wd p                                      (decoupled: p <- p - lr wd p instead, with the old p)
///     v  <- alpha v + (1 - alpha) g^2                     v = initial before the first step
///     g_ <- alpha g_ + (1 - alpha) g                      (centered)
///     b  <- mu b + g / (sqrt(v - g_^2) + eps)             (g_ = 0 unless centered)
///     p  <- p - lr b
///
/// v - g_^2, a variance, is clamped at 0, because rounding can make it negative (PyTorch's result is then NaN). It is v
/// where v has overflowed.
/// If `decay_by_lr` is false, the decoupled decay is not multiplied by lr, as in flashlight.
struct rmsprop {
  /// Learning rate lr; decay rate alpha of v, in [0, 1); eps above 0; weight_decay (wd), momentum (mu) and initial,
  /// the first value of v, at least 0.
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0, initial = 0;
  bool centered = false, eps_inside = false, lr_inside = false, decoupled = false, decay_by_lr = true;

  template <class Real> struct state { Real v, g_, b; };
  template <class Real> struct terms {  // rest = 1 - alpha; lr is inside the buffer or outside
    Real lr, lr_b, alpha, rest, outside, inside, wd, decay, mu, centered;
  };
  static constexpr char const* slots[] = {"v", "g_", "b"};

  bool uses(std::size_t slot) const { return slot == 0 || (slot == 1 ? centered : momentum != 0); }

  template <class Real> DESCENT_HD state<Real> start(Real) const { return {Real(initial), Real(0), Real(0)}; }

  DESCENT_HD terms<double> at(std::int64_t) const {
    double const outside = eps_inside ? 0 : eps;
    return {lr_inside ? 1 : lr, lr_inside ? lr : 1, alpha, 1 - alpha, outside, eps - outside,
            decoupled ? 0 : weight_decay, decoupled ? (decay_by_lr ? lr : 1) * weight_decay : 0, momentum,
            centered ? 1.0 : 0.0};
  }

  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    g = g + k.wd * p;
    s.v = k.alpha * s.v + k.rest * g * g;
    s.g_ = k.alpha * s.g_ + k.centered * k.rest * g;
    Real const variance = select(is_finite(s.v), max(s.v - s.g_ * s.g_, Real(0)), s.v);
    s.b = k.mu * s.b + k.lr_b * g / (sqrt(variance + k.inside) + k.outside);
    return p - k.decay * p - k.lr * s.b;
  }

  static constexpr field_range<rmsprop> ranges[] = {
      {&rmsprop::lr, at_least_0},           {&rmsprop::alpha, below_1},       {&rmsprop::eps, above_0},
      {&rmsprop::weight_decay, at_least_0}, {&rmsprop::momentum, at_least_0}, {&rmsprop::initial, at_least_0}};
  void check() const {
    detail::require_flag(decay_by_lr || decoupled, "rmsprop", "decay_by_lr", "on unless decoupled", decay_by_lr);
  }
};
static_assert(update_rule<rmsprop>);

}  // namespace descent
