// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

namespace descent {

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
  void check() const {
    check_schedule(first);
    if constexpr (sizeof...(Rest) > 0) rest.check();
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

  void check() const {
    detail::require_order("join", "at", at, true);
    pieces.check();
  }
};
template <std::size_t N, class... S> join(std::int64_t const (&)[N], S...) -> join<S...>;

/// The product of schedules, each from step 0, as PyTorch's ChainedScheduler: one has the value, the others factors.
template <class... S> struct chained {
  /// The schedules.
  detail::schedule_list<S...> factors{};

  constexpr chained() = default;
  DESCENT_HD constexpr chained(S... schedules) : factors(schedules...) {}

  DESCENT_HD double operator()(std::int64_t t) const { return factors.product(t); }

  void check() const { factors.check(); }
};

}  // namespace descent
