// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace descent {

/// A schedule is a pure function of the step, the number of updates applied so far: 0 for the first one. Skipped steps
/// do not count. It is evaluated in double on host and device, so it must be trivially copyable, with an operator
/// marked DESCENT_HD. Its domain is every step >= 0; the schedules of this library also return some number for other
/// steps. An optional `void check() const` throws std::invalid_argument if a field is out of range.
template <class S>
concept schedule = std::is_trivially_copyable_v<S> && requires(S const s, std::int64_t step) {
  { s(step) } -> std::same_as<double>;
};

/// Length, optional: from step `length()` on the value stays the same; `endless` if it never does. explain() shows the
/// first, the largest and the last value of a schedule that ends. If the optimizer is on a device, it shows only values
/// of schedules that have a length, and calls these on the host.
inline constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();
template <class S>
concept has_length = requires(S const s) {
  { s.length() } -> std::same_as<std::int64_t>;
};

namespace detail {

/// A length after so many steps.
constexpr std::int64_t later(std::int64_t steps, std::int64_t length) {
  return length > endless - steps ? endless : steps + length;
}
constexpr std::int64_t longer(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

template <class S> void check_schedule([[maybe_unused]] S const& s) {
  if constexpr (requires { s.check(); }) s.check();
}
constexpr void require_steps(char const* name, char const* field, std::int64_t steps, std::int64_t least) {
  require(steps >= least && steps <= std::int64_t{1} << 62, name, field,
          least == 0 ? "in [0, 2^62]" : least == 1 ? "in [1, 2^62]" : "in [2, 2^62]", steps);
}
/// The default of a field that must be set.
inline constexpr double not_given = std::numeric_limits<double>::quiet_NaN();
inline void require_given(char const* name, char const* field, double x) {
  require(is_finite(x), name, field, "set to a finite value", x);
}
inline void require_positive(char const* name, char const* field, double x) {
  require(x > 0 && is_finite(x), name, field, "finite and above 0", x);
}
/// Requires steps in order, the first at least 1.
template <std::size_t N>
void require_order(char const* name, char const* field, std::int64_t const (&at)[N], bool strictly) {
  std::int64_t last = strictly ? 0 : 1;
  for (std::size_t i = 0; i < N; last = at[i++])
    require_entry(strictly ? at[i] > last : at[i] >= last, name, field, i,
                  strictly ? "above 0 and increasing" : "at least 1 and not decreasing", at[i]);
}
template <std::size_t N> void require_all_finite(char const* name, char const* field, double const (&values)[N]) {
  for (std::size_t i = 0; i < N; ++i) require_entry(is_finite(values[i]), name, field, i, "finite", values[i]);
}

/// initial factor^n, accurate to the last bit or two for any n.
DESCENT_HD inline double decayed(double initial, double factor, std::int64_t n) {
  return initial == 0 ? 0 : initial * precise_power(factor, n);  // not 0 times infinity
}
/// x^y for x >= 0. If y is an integer up to 64, it gives the same bits on every host and device.
DESCENT_HD inline double power_of(double x, double y) {
  return y >= 0 && y <= 64 && y == ::floor(y) ? descent::power(x, std::int64_t(y)) : descent::pow(x, y);
}

}  // namespace detail

}  // namespace descent
