// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>
#include <descent/core/policy.hpp>
#include <descent/core/range.hpp>

#include <cstdint>
#include <limits>

/// Averages of the parameters over the steps. The optimizer owns them in the type of the arithmetic and updates them in
/// the same pass. optimizer::average(name) reads one; swap_average() exchanges them with the values for evaluation.
///
/// These policies, and those of a user, are stages of the update: `terms<Real>` and at(t) as in a rule; idle(k), if
/// there is nothing to do with these terms and nothing to read; and
///
///     kind::average     after(p, e, k)    the new average, from the new parameter and the old average
///     kind::lookahead   after(p, s, k)    the new parameter, from what the rule made of it, and `kept<Real>` s: slow,
///                                         in the type of masters or values, which starts as the parameter, and, if
///                                         the policy has it, b, in the type of the arithmetic, which starts at 0
namespace descent {

/// Exponential moving average from update `start` on. Before that the average is the parameter itself.
///
///     e <- d e + (1 - d) p                         d = decay, e starts as the parameter
///     e <- e + (1 - d) / (1 - d^k) (p - e)         bias corrected: Adam's m^ (Kingma & Ba 2015, section 3) of the
///                                                  k = t - start parameters so far, written without a second buffer
struct ema {
  double decay = 0.999;         ///< d, in [0, 1)
  std::int64_t start = 0;       ///< updates before averaging starts
  bool bias_corrected = false;  ///< uses the second formula

  using policy_kind = kind::average;
  template <class Real> struct alignas(2 * sizeof(Real)) terms { Real keep, take; };  // one load
  /// The terms for a weight of p; e has the rest.
  DESCENT_HD static terms<double> with_weight(double take) { return {1 - take, take}; }
  DESCENT_HD terms<double> at(std::int64_t t) const { return with_weight(weight(t)); }
  /// The average, from the parameter after the update.
  template <class Real> DESCENT_HD static Real after(Real p, Real e, terms<Real> const& k) {
    return k.keep * e + k.take * p;
  }
  /// The weight of p in the average after update t; e has the rest.
  DESCENT_HD double weight(std::int64_t t) const {
    if (t <= start) return 1;
    return bias_corrected ? (1 - decay) / (1 - power(decay, t - start)) : 1 - decay;
  }
  static constexpr field_range<ema> ranges[] = {{&ema::decay, below_1}, {&ema::start, at_least_0}};
};

/// Stochastic weight averaging (Izmailov et al. 2018, algorithm 1): the mean of the parameters after updates start,
/// start + every, start + 2 every, .... Before `start` the average is the parameter itself.
///
///     e <- (n e + p) / (n + 1)
struct swa {
  std::int64_t start = 1, every = 1;  ///< the first update that is averaged, and the interval, in updates

  using policy_kind = kind::average;
  template <class Real> using terms = ema::terms<Real>;
  DESCENT_HD terms<double> at(std::int64_t t) const { return ema::with_weight(weight(t)); }
  template <class Real> DESCENT_HD static bool idle(terms<Real> const& k) { return k.take == 0; }
  /// The average, from the parameter after the update.
  template <class Real> DESCENT_HD static Real after(Real p, Real e, terms<Real> const& k) {
    return ema::after(p, e, k);
  }
  /// The weight of p after update t, 0 if that update is not averaged.
  DESCENT_HD double weight(std::int64_t t) const {
    if (t <= start) return 1;
    std::int64_t const n = (t - start) / every;
    return (t - start) % every == 0 ? 1 / double(n + 1) : 0;
  }
  static constexpr field_range<swa> ranges[] = {{&swa::start, from_1}, {&swa::every, from_1}};
};

/// Lookahead (Zhang et al. 2019, algorithm 1): every k-th update pulls slow weights towards the fast ones, which then
/// continue from there. The slow weights are owned, have the type of the master or value, and start as the parameter.
///
///     s <- s + alpha (p - s),  p <- s          at t = k, 2 k, ...
struct lookahead {
  int k = 5;           ///< updates between two pulls
  double alpha = 0.5;  ///< size of a pull, in (0, 1]

  using policy_kind = kind::lookahead;
  template <class Real> struct kept { Real slow; };
  template <class Real> struct terms { Real alpha; };
  DESCENT_HD terms<double> at(std::int64_t t) const { return {t % k == 0 ? alpha : 0}; }
  template <class Real> DESCENT_HD static bool idle(terms<Real> const& k) { return k.alpha == 0; }
  /// The parameter, from what the rule made of it.
  template <class Real> DESCENT_HD static Real after(Real p, kept<Real>& s, terms<Real> const& k) {
    return s.slow = s.slow + k.alpha * (p - s.slow);
  }
  static constexpr field_range<lookahead> ranges[] = {{&lookahead::k, from_1}, {&lookahead::alpha, above_0_to_1}};
};

/// Lookahead whose pull is a step with Nesterov's momentum: SNOO, the step-K Nesterov outer optimizer (Kallusky et al.
/// 2025), and the outer step of DiLoCo (Douillard et al. 2023) for one worker. The distance that K updates of the rule
/// have gone is the outer gradient. It replaces lookahead, which is the case momentum = 0, lr = alpha.
///
///     d <- p - s,  b <- mu b + d,  s <- s + lr (d + mu b),  p <- s          at t = K, 2 K, ...
///
/// The slow weights s are those of lookahead. The outer momentum b is owned, in the type of the arithmetic; it starts
/// at 0.
struct outer {
  int every = 30;         ///< K, updates between two outer steps
  double lr = 0.7;        ///< outer learning rate, above 0
  double momentum = 0.9;  ///< mu, in [0, 1)

  using policy_kind = kind::lookahead;
  template <class Real> struct kept { Real slow, b; };
  template <class Real> struct terms { Real lr, mu; };
  DESCENT_HD terms<double> at(std::int64_t t) const { return {t % every == 0 ? lr : 0, momentum}; }
  template <class Real> DESCENT_HD static bool idle(terms<Real> const& k) { return k.lr == 0; }
  /// The parameter, from what the rule made of it.
  template <class Real> DESCENT_HD static Real after(Real p, kept<Real>& s, terms<Real> const& k) {
    Real const d = p - s.slow;
    s.b = k.mu * s.b + d;
    return s.slow = s.slow + k.lr * (d + k.mu * s.b);
  }
  static constexpr field_range<outer> ranges[] = {
      {&outer::every, from_1}, {&outer::lr, above_0}, {&outer::momentum, below_1}};
};

/// EMA-Nesterov (Yau et al. 2026, arXiv 2605.25395): the whole update happens ahead of the parameters x, at the point y
/// in the direction of the average b of their steps so far. The rule, its decay and its norms read y in place of x. The
/// values, and masters, hold y; x are slow weights as those of lookahead, which it replaces.
///
///     x_ <- rule(y, g(y)),  b <- mu b + (1 - mu) (x_ - x),  x <- x_,  y <- x + beta b
///
/// beta is `lookahead` times lr / max_lr in the updates from `start` until before `until`, otherwise 0, so that y is x.
/// lr is that of group 0 in the update that starts at y, as far as it is known when y is written: with on_plateau's
/// factor, but without what changes between two steps. The ratio is in [0, 1]. The matrix rule's lr has no part in it.
///
/// The rule starts at y as it is stored: in the type of masters or values. b is owned, in the type of the arithmetic,
/// averages all updates of x as stored, and starts at 0. Averages are of x. slow(name) reads x; train the last updates
/// with a beta of 0, as the authors do, or evaluate x. If something else writes the values, call reload_values(), which
/// takes them as x. Frozen groups and rows that are not selected stay at their y.
struct ema_nesterov {
  double lookahead = 0.5;  ///< the largest beta, at least 0
  double momentum = 0.99;  ///< mu, in [0, 1)
  std::int64_t start = 0, until = std::numeric_limits<std::int64_t>::max();  ///< updates, at least 0
  /// Whether beta follows the learning rate. Rules without lr have the ratio 1.
  bool follows_lr = true;
  /// The largest learning rate. 0: the rule's lr at construction, or `peak` of the schedule that lr follows or of
  /// warmup's `then` (times that lr, if the schedule scales it). Must be given for schedules without a peak.
  double max_lr = 0;

  using policy_kind = kind::lookahead;
  /// The values are ahead of the parameters.
  static constexpr bool leads = true;
  template <class Real> struct kept { Real slow, b; };
  template <class Real> struct terms { Real pull, mu, take; };
  /// The pull is beta without the learning rate.
  DESCENT_HD terms<double> at(std::int64_t t) const {
    return {t >= start && t < until ? lookahead : 0, momentum, 1 - momentum};
  }
  /// The value, from what the rule made of it, which slow becomes.
  template <class Real> DESCENT_HD static Real after(Real p, kept<Real>& s, terms<Real> const& k) {
    s.b = k.mu * s.b + k.take * (p - s.slow);
    s.slow = p;
    return p + k.pull * s.b;
  }
  /// The factor of beta for a learning rate; 0 for one that is no number.
  DESCENT_HD double part(double lr) const {
    double const ratio = lr / max_lr;
    return is_nan(ratio) || ratio < 0 ? 0 : min(ratio, 1.0);
  }
  static constexpr field_range<ema_nesterov> ranges[] = {{&ema_nesterov::lookahead, at_least_0},
                                                         {&ema_nesterov::momentum, below_1},
                                                         {&ema_nesterov::start, at_least_0},
                                                         {&ema_nesterov::until, at_least_0},
                                                         {&ema_nesterov::max_lr, at_least_0}};
  void check() const {
    detail::require(follows_lr || max_lr == 0, "ema_nesterov", "max_lr", "0 without follows_lr", max_lr);
  }
};

}  // namespace descent
