// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/transform.hpp>

/// Gradient transforms for chain{transforms..., rule}. clip_value and gradient_noise, which are also policies, are in
/// policies/clip.hpp and policies/noise.hpp.
namespace descent {

/// Weight decay in its L2 form: g <- g + wd p.
struct l2 {
  double weight_decay = 0;  ///< wd, at least 0
  static constexpr bool step_needs_p = true;

  template <class Real> struct terms { Real wd; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {weight_decay}; }
  template <class Real> DESCENT_HD static Real apply(Real p, Real g, terms<Real> const& k) { return g + k.wd * p; }
  static constexpr field_range<l2> ranges[] = {{&l2::weight_decay, at_least_0}};
};

/// The subgradient of an L1 penalty: g <- g + wd sign(p). It does not make parameters exactly 0.
struct l1 {
  double weight_decay = 0;  ///< wd, at least 0
  static constexpr bool step_needs_p = true;

  template <class Real> struct terms { Real wd; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {weight_decay}; }
  template <class Real> DESCENT_HD static Real apply(Real p, Real g, terms<Real> const& k) {
    return g + k.wd * sign(p);
  }
  static constexpr field_range<l1> ranges[] = {{&l1::weight_decay, at_least_0}};
};

/// g <- factor g, as in optax.scale.
struct gradient_scale {
  double factor = 1;  ///< finite

  template <class Real> struct terms { Real factor; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {factor}; }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const& k) { return k.factor * g; }
  static constexpr field_range<gradient_scale> ranges[] = {{&gradient_scale::factor, any_finite}};
};

/// g <- sign(g), 0 if g is 0 or NaN, as in optax.scale_by_sign.
struct gradient_sign {
  template <class Real> struct terms {};
  DESCENT_HD terms<double> at(std::int64_t) const { return {}; }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const&) { return sign(g); }
};

/// Sets gradients that are not finite to 0, element by element; optax.zero_nans keeps infinities. Whatever measures the
/// gradients in memory (clip_norm, skip_nonfinite, a dynamic loss scale, a part with sums) skips the step before that.
struct zero_nonfinite {
  template <class Real> struct terms {};
  DESCENT_HD terms<double> at(std::int64_t) const { return {}; }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const&) {
    return select(is_finite(g), g, Real(0));
  }
};

/// The sum of past gradients, as in optax.trace: the velocity of heavy ball in front of any rule.
///
///     b <- decay b + g        g <- b          (Nesterov: g <- g + decay b)
struct gradient_trace {
  double decay = 0.9;     ///< in [0, 1)
  bool nesterov = false;  ///< uses the second formula for g

  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real decay, nesterov; };
  static constexpr char const* slots[] = {"trace"};
  DESCENT_HD terms<double> at(std::int64_t) const { return {decay, nesterov ? 1.0 : 0.0}; }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, state<Real>& s, terms<Real> const& k) {
    s.b = k.decay * s.b + g;
    return select(k.nesterov > Real(0), g + k.decay * s.b, s.b);
  }
  static constexpr field_range<gradient_trace> ranges[] = {{&gradient_trace::decay, below_1}};
};

/// The mean of past gradients, as in optax.ema:
///
///     m <- decay m + (1 - decay) g        g <- m / (1 - decay^t)      (without debias: g <- m)
struct gradient_ema {
  double decay = 0.9;  ///< in [0, 1)
  bool debias = true;  ///< corrects the bias of m

  template <class Real> struct state { Real m; };
  template <class Real> struct terms { Real decay, gain, unbias; };
  static constexpr char const* slots[] = {"ema"};
  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {decay, 1 - decay, debias ? 1 / (1 - power(decay, t)) : 1};
  }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = k.decay * s.m + k.gain * g;
    return s.m * k.unbias;
  }
  static constexpr field_range<gradient_ema> ranges[] = {{&gradient_ema::decay, below_1}};
};

// ---- with sums over each tensor: at most one in a chain -----------------------------------------------------------

/// Centralization (Yong et al. 2020) over each tensor: g <- g - mean(g). The paper and optax.centralize take the mean
/// over each row of an {outputs, inputs} matrix and do not change vectors. To do that, add each row as a parameter of
/// its own, and put vectors into a group with `on` = 0.
struct centralize {
  double on = 1;  ///< factor of the mean; 0 switches it off

  template <class Real> struct terms { Real mean; };
  template <class Real> struct sums { Real g, count; };
  static constexpr scope sums_over = scope::tensor;
  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, terms<Real> const&) { return {g, Real(1)}; }
  DESCENT_HD terms<double> at(std::int64_t) const { return {0}; }
  DESCENT_HD terms<double> at(std::int64_t, sums<double> const& total) const {
    return {total.count > 0 ? on * total.g / total.count : 0};
  }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const& k) { return g - k.mean; }
  static constexpr field_range<centralize> ranges[] = {{&centralize::on, any_finite}};
};

/// Clips the root mean square of each tensor's gradient, as in optax.clip_by_block_rms: g <- g / max(1, RMS(g) / max).
struct clip_rms {
  double max = 1;  ///< above 0

  template <class Real> struct terms { Real factor; };
  template <class Real> struct sums { Real gg, count; };
  static constexpr scope sums_over = scope::tensor;
  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, terms<Real> const&) { return {g * g, Real(1)}; }
  DESCENT_HD terms<double> at(std::int64_t) const { return {1}; }
  DESCENT_HD terms<double> at(std::int64_t, sums<double> const& total) const {
    double const rms = total.count > 0 ? sqrt(total.gg / total.count) : 0;
    return {rms > max ? max / rms : 1};
  }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const& k) { return k.factor * g; }
  static constexpr field_range<clip_rms> ranges[] = {{&clip_rms::max, above_0_or_infinite}};
};

/// g <- scale g / (||g|| + eps) over each tensor, or with scope::model over all, as in optax.normalize_by_update_norm.
template <scope Over = scope::tensor> struct normalize {
  double scale = 1, eps = 1e-6;  ///< scale is finite, eps above 0

  template <class Real> struct terms { Real factor; };
  template <class Real> struct sums { Real gg; };
  static constexpr scope sums_over = Over;
  template <class Real> DESCENT_HD static sums<Real> sum(Real, Real g, terms<Real> const&) { return {g * g}; }
  DESCENT_HD terms<double> at(std::int64_t) const { return {1}; }
  DESCENT_HD terms<double> at(std::int64_t, sums<double> const& total) const {
    return {scale / (sqrt(total.gg) + eps)};
  }
  template <class Real> DESCENT_HD static Real apply(Real, Real g, terms<Real> const& k) { return k.factor * g; }
  static constexpr field_range<normalize> ranges[] = {{&normalize::scale, any_finite},
                                                      {&normalize::eps, above_0_or_infinite}};
};

}  // namespace descent
