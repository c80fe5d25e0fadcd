// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>
#include <descent/core/policy.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace descent {

/// The state of a plateau. It may be copied, saved and restored.
struct plateau_state {
  double value;            ///< of the hyperparameter
  double best, mean;       ///< the best metric so far, and the mean of those collected
  std::int64_t bad;        ///< metrics in a row without improvement
  std::int64_t cooldown;   ///< metrics left during which bad ones do not count
  std::int64_t collected;  ///< metrics in the mean
};
static_assert(std::is_trivially_copyable_v<plateau_state>);

/// Reduces a value when a metric stops improving: PyTorch's ReduceLROnPlateau, with its defaults, or optax's
/// reduce_on_plateau, with `.eps = 0, .fires = plateau::at_patience`. A metric m is better than the best one so far if
///
///     m < best (1 - relative) - absolute     for smaller_is_better
///     m > best (1 + relative) + absolute     for larger_is_better
///
/// For metrics that may be negative use `absolute`. A metric that is NaN is bad. After more than `patience` bad metrics
/// in a row (with at_patience: after `patience` of them)
///
///     value = max(factor value, floor)       if this reduces it by more than eps
///
/// and the next `cooldown` metrics do not count as bad. With `every` > 1, the mean of `every` metrics counts as one.
struct plateau {
  /// What counts as better, and after how many bad metrics the value is reduced.
  enum order : int { smaller_is_better, larger_is_better };
  enum moment : int { above_patience, at_patience };

  double initial = 1;                                   ///< a learning rate, or 1 for a factor of it
  double factor = 0.1;                                  ///< in (0, 1)
  std::int64_t patience = 10, cooldown = 0, every = 1;  ///< in metrics: at least 0, 0 and 1
  double relative = 1e-4, absolute = 0;                 ///< thresholds, in [0, 1) and at least 0
  double floor = 0, eps = 1e-8;                         ///< the lowest value, up to initial; the least reduction
  order metric = smaller_is_better;                     ///< what counts as better
  moment fires = above_patience;                        ///< with at_patience, patience is at least 1

  DESCENT_HD plateau_state start() const {
    constexpr double infinity = __builtin_inf();
    return {initial, metric == smaller_is_better ? infinity : -infinity, 0, 0, 0, 0};
  }

  /// Takes one metric. Returns whether the value was reduced.
  DESCENT_HD bool next(plateau_state& s, double m) const {
    s.mean = (double(s.collected) * s.mean + m) / double(s.collected + 1);
    if (++s.collected < every) return false;
    m = s.mean, s.mean = 0, s.collected = 0;

    if (is_better(m, s.best)) s.best = m, s.bad = 0;
    else ++s.bad;
    if (s.cooldown > 0) --s.cooldown, s.bad = 0;
    if (fires == at_patience ? s.bad < patience : s.bad <= patience) return false;

    s.bad = 0;
    s.cooldown = cooldown;
    double const lower = descent::max(s.value * factor, floor);
    if (!(s.value - lower > eps)) return false;
    s.value = lower;
    return true;
  }

  /// Whether a metric is better than the best one so far.
  DESCENT_HD bool is_better(double m, double best) const {
    if (is_nan(m)) return false;
    return metric == smaller_is_better ? m < best * (1 - relative) - absolute : m > best * (1 + relative) + absolute;
  }

  void check() const {
    constexpr char const* name = "plateau";
    detail::require_finite(name, "initial", initial);
    detail::require(factor > 0 && factor < 1, name, "factor", "in (0, 1)", factor);
    detail::require(patience >= (fires == at_patience), name, "patience",
                    fires == at_patience ? "at least 1 if it fires at patience" : "at least 0", patience);
    detail::require(cooldown >= 0, name, "cooldown", "at least 0", cooldown);
    detail::require(every >= 1, name, "every", "at least 1", every);
    detail::require_fraction(name, "relative", relative);
    detail::require_nonnegative(name, "absolute", absolute);
    detail::require(is_finite(floor) && floor <= initial, name, "floor",
                    ("finite and at most initial, " + detail::number(initial)).c_str(), floor);
    detail::require_nonnegative(name, "eps", eps);
  }
};
static_assert(std::is_trivially_copyable_v<plateau>);

/// Multiplies every learning rate, after its schedule if it has one, by the value of a plateau. The value is part of
/// the control block: optimizer::observe(metric) passes it a metric, and captured steps follow it.
///
///     optimizer opt{params, sgd{.lr = 0.1}, on_plateau{{.factor = 0.1, .patience = 10}}};
///     for (...) { ...; opt.observe(validation_loss); }
///
/// optimizer::plateau() and set_plateau() save and restore its state.
struct on_plateau {
  /// The settings, with initial = 1 and floor at least 0.
  plateau settings{};

  using policy_kind = kind::plateau;
  /// Fails to compile if the rule has no field lr.
  template <class Rule> static constexpr void require_rule() {
    static_assert(requires(Rule r) { { r.lr } -> std::same_as<double&>; },
                  "on_plateau: the rule has no field 'double lr'");
  }
  void check() const {
    settings.check();
    detail::require(settings.initial == 1, "on_plateau", "initial", "1, because it is a factor", settings.initial);
    detail::require(settings.floor >= 0, "on_plateau", "floor", "at least 0", settings.floor);
  }
};

}  // namespace descent
