// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

#include <string>

/// Schedules made of others: a factor, limits, a delay, epochs, one after the other, a product.
namespace descent {

/// factor s(t)
template <class S> struct scaled {
  static_assert(schedule<S>, "scaled<S>: S must be a schedule, 'double operator()(std::int64_t step) const'");
  /// factor is finite; inner is s.
  double factor = 1;
  S inner{};

  DESCENT_HD double operator()(std::int64_t t) const { return factor * inner(t); }
  std::int64_t length() const requires has_length<S> { return inner.length(); }  ///< see has_length

  void check() const {
    detail::require_finite("scaled", "factor", factor);
    detail::check_schedule(inner);
  }
};

/// s(t), but at least `low` and at most `high`
template <class S> struct clamped {
  static_assert(schedule<S>, "clamped<S>: S must be a schedule, 'double operator()(std::int64_t step) const'");
  /// low <= high, both finite; inner is s.
  double low = 0, high = 0;
  S inner{};

  DESCENT_HD double operator()(std::int64_t t) const {
    double const value = inner(t);
    return value < low ? low : value > high ? high : value;
  }
  std::int64_t length() const requires has_length<S> { return inner.length(); }  ///< see has_length

  void check() const {
    detail::require_finite("clamped", "low", low);
    detail::require(high >= low && is_finite(high), "clamped", "high", "finite and at least low", high);
    detail::check_schedule(inner);
  }
};

/// s(0) for `steps` steps, then s from its own step 0: s(max(t - steps, 0))
template <class S> struct delayed {
  static_assert(schedule<S>, "delayed<S>: S must be a schedule, 'double operator()(std::int64_t step) const'");
  /// steps is at least 0; inner is s.
  std::int64_t steps = 0;
  S inner{};

  DESCENT_HD double operator()(std::int64_t t) const { return inner(t < steps ? 0 : t - steps); }
  /// See has_length.
  std::int64_t length() const requires has_length<S> { return detail::later(steps, inner.length()); }

  void check() const {
    detail::require_steps("delayed", "steps", steps, 0);
    detail::check_schedule(inner);
  }
};

/// A schedule of epochs, which changes only between epochs: s(floor(t / steps_per_epoch)). To use fractional epochs,
/// give the schedule its lengths in steps instead: epochs times steps_per_epoch.
template <class S> struct per_epoch {
  static_assert(schedule<S>, "per_epoch<S>: S must be a schedule, 'double operator()(std::int64_t step) const'");
  /// inner is s; steps_per_epoch is at least 1.
  S inner{};
  std::int64_t steps_per_epoch = 1;

  DESCENT_HD double operator()(std::int64_t t) const { return inner(t / steps_per_epoch); }
  /// See has_length.
  std::int64_t length() const requires has_length<S> {
    std::int64_t const epochs = inner.length();
    return epochs > endless / steps_per_epoch ? endless : epochs * steps_per_epoch;
  }

  void check() const {
    detail::check_schedule(inner);
    detail::require_steps("per_epoch", "steps_per_epoch", steps_per_epoch, 1);
  }
};

/// A function `double f(double epoch)` of the fractional epoch: f(t / steps_per_epoch)
template <class F> struct fractional_epochs {
  static_assert(std::is_trivially_copyable_v<F> && std::is_invocable_r_v<double, F const&, double>,
                "fractional_epochs<F>: F must be trivially copyable and have 'double operator()(double epoch) const'");
  /// function is f; steps_per_epoch is at least 1.
  F function{};
  std::int64_t steps_per_epoch = 1;

  DESCENT_HD double operator()(std::int64_t t) const { return function(double(t) / double(steps_per_epoch)); }

  void check() const { detail::require_steps("fractional_epochs", "steps_per_epoch", steps_per_epoch, 1); }
};

template <class S> scaled(double, S) -> scaled<S>;
template <class S> clamped(double, double, S) -> clamped<S>;
template <class S> delayed(std::int64_t, S) -> delayed<S>;
template <class S> per_epoch(S, std::int64_t) -> per_epoch<S>;
template <class F> fractional_epochs(F, std::int64_t) -> fractional_epochs<F>;

namespace detail {

/// A list of schedules. Unlike std::tuple, it is trivially copyable.
template <class... S> struct schedule_list {};
template <class First, class... Rest> struct schedule_list<First, Rest...> {
  static_assert(schedule<First>, "join and chained: each must be a schedule, 'double operator()(std::int64_t) const'");
  First first{};
  schedule_list<Rest...> rest{};

  constexpr schedule_list() = default;
  DESCENT_HD constexpr schedule_list(First f, Rest... r) : first(f), rest(r...) {}

  /// The value at step t. The first piece begins at step `start`, the others at the steps `at`.
  DESCENT_HD double piece(std::int64_t t, std::int64_t start, [[maybe_unused]] std::int64_t const* at) const {
    if constexpr (sizeof...(Rest) > 0)
      if (t >= *at) return rest.piece(t, *at, at + 1);
    return first(t - start);
  }
  DESCENT_HD double product(std::int64_t t) const {
    if constexpr (sizeof...(Rest) > 0) return first(t) * rest.product(t);
    else return first(t);
  }
  std::int64_t last_length() const {
    if constexpr (sizeof...(Rest) > 0) return rest.last_length();
    else return first.length();
  }
  std::int64_t longest() const {
    if constexpr (sizeof...(Rest) > 0) return longer(first.length(), rest.longest());
    else return first.length();
  }
  void check() const {
    check_schedule(first);
    if constexpr (sizeof...(Rest) > 0) rest.check();
  }
  /// The schedules have their numbers as names.
  template <class F> void each_field(F const& f, int number = 0) {
    f(std::to_string(number), first);
    if constexpr (sizeof...(Rest) > 0) rest.each_field(f, number + 1);
  }
};

}  // namespace detail

/// Schedules one after the other: `join{{10, 30}, a, b, c}` is a before step 10, b from step 10 and c from step 30 on.
/// Each piece starts at its own step 0.
template <class... S> struct join {
  static_assert(sizeof...(S) >= 2, "join: needs at least two schedules, and the step between each two");
  /// The steps at which the pieces after the first begin, above 0 and increasing.
  std::int64_t at[sizeof...(S) - 1] = {};
  detail::schedule_list<S...> pieces{};

  constexpr join() = default;
  DESCENT_HD constexpr join(std::int64_t const (&boundaries)[sizeof...(S) - 1], S... schedules) : pieces(schedules...) {
    for (std::size_t i = 0; i < sizeof...(S) - 1; ++i) at[i] = boundaries[i];
  }

  DESCENT_HD double operator()(std::int64_t t) const { return pieces.piece(t, 0, at); }
  /// See has_length.
  std::int64_t length() const requires(has_length<S> && ...) {
    return detail::later(at[sizeof...(S) - 2], pieces.last_length());
  }

  void check() const {
    detail::require_order("join", "at", at, true);
    pieces.check();
  }
  /// See core/fields.hpp.
  template <class F> void each_field(F const& f) { f("at", at), f("pieces", pieces); }
};
template <std::size_t N, class... S> join(std::int64_t const (&)[N], S...) -> join<S...>;

/// The product of schedules, each from step 0, as PyTorch's ChainedScheduler: one has the value, the others factors.
template <class... S> struct chained {
  /// The schedules.
  detail::schedule_list<S...> factors{};

  constexpr chained() = default;
  DESCENT_HD constexpr chained(S... schedules) : factors(schedules...) {}

  DESCENT_HD double operator()(std::int64_t t) const { return factors.product(t); }
  std::int64_t length() const requires(has_length<S> && ...) { return factors.longest(); }  ///< see has_length

  void check() const { factors.check(); }
  /// See core/fields.hpp.
  template <class F> void each_field(F const& f) { f("factors", factors); }
};

}  // namespace descent
