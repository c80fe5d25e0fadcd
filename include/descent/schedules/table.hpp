// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/schedule.hpp>
#include <descent/schedules/cosine.hpp>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

/// Values and points that are listed: one for each step, one for each interval, or knots known only at run time.
namespace descent {

/// A table of the first N values; the last one holds from then on. For values that only a recurrence defines.
template <std::size_t N> struct table {
  static_assert(N >= 1 && N <= 256, "table<N>: N must be 1 to 256: kernels take it by value");
  /// Finite.
  double values[N] = {};

  DESCENT_HD double operator()(std::int64_t t) const {
    return values[t < 0 ? 0 : t < std::int64_t(N) ? t : std::int64_t(N) - 1];
  }
  std::int64_t length() const { return std::int64_t(N) - 1; }  ///< see has_length

  void check() const { detail::require_all_finite("table", "values", values); }
};
static_assert(schedule<table<2>>);

/// PyTorch's MultiplicativeLR for N steps: step t > 0 multiplies the value before it by factor(t).
///
///     s(0) = initial,  s(t) = s(t - 1) factor(t)
template <std::size_t N, class Factor> table<N> multiplicative(double initial, Factor const& factor) {
  table<N> s{{initial}};
  for (std::size_t t = 1; t < N; ++t) s.values[t] = s.values[t - 1] * double(factor(std::int64_t(t)));
  return s;
}

/// A constant for each interval: values[0] before step at[0], values[i] from at[i - 1] on, values[N] from at[N - 1] on.
template <std::size_t N> struct piecewise_constant {
  static_assert(N >= 1 && N <= 128, "piecewise_constant<N>: N must be 1 to 128: kernels take it by value");
  /// Steps above 0, increasing, and finite values.
  std::int64_t at[N] = {};
  double values[N + 1] = {};

  DESCENT_HD double operator()(std::int64_t t) const {
    std::size_t passed = 0;
    for (std::size_t i = 0; i < N; ++i) passed += at[i] <= t;
    return values[passed];
  }
  std::int64_t length() const { return at[N - 1]; }  ///< see has_length

  void check() const {
    detail::require_order("piecewise_constant", "at", at, true);
    detail::require_all_finite("piecewise_constant", "values", values);
  }
};
static_assert(schedule<piecewise_constant<2>>);

/// Interpolates the points (0, values[0]), (at[0], values[1]), ..., (at[N - 1], values[N]) by lines or half cosine
/// waves. Constant from the last point on.
template <std::size_t N> struct piecewise_interpolated {
  static_assert(N >= 1 && N <= 128, "piecewise_interpolated<N>: N must be 1 to 128: kernels take it by value");
  /// Steps above 0, increasing, and finite values.
  std::int64_t at[N] = {};
  double values[N + 1] = {};
  anneal shape = anneal::linear;

  DESCENT_HD double operator()(std::int64_t t) const {
    std::size_t passed = 0;
    for (std::size_t i = 0; i < N; ++i) passed += at[i] <= t;
    if (passed == N) return values[N];
    std::int64_t const from = passed == 0 ? 0 : at[passed - 1];
    return detail::between(values[passed], values[passed + 1], double(t - from) / double(at[passed] - from), shape);
  }
  std::int64_t length() const { return at[N - 1]; }  ///< see has_length

  void check() const {
    detail::require_order("piecewise_interpolated", "at", at, true);
    detail::require_all_finite("piecewise_interpolated", "values", values);
  }
};
static_assert(schedule<piecewise_interpolated<2>>);

enum class between_knots { linear, constant };  ///< the shape of the curve between two knots

/// A curve through knots that are only known at run time, for example read from a file. The schedule itself stores at
/// most N knots. Before the first knot it has the first value; from the last knot on, it has the last value.
///
///     linear:      s(t) = v_i + (v_i+1 - v_i) (t - t_i) / (t_i+1 - t_i)     for t_i <= t < t_i+1
///     constant:    s(t) = v_i
///
/// The constructor throws std::invalid_argument if there are no knots or too many, if a step is negative or does not
/// exceed the one before, or if a value is not finite.
template <int N = 16> class table_schedule {
  static_assert(N >= 1 && N <= 128, "table_schedule<N>: N must be 1 to 128: kernels take it by value");

 public:
  /// A step and the value there.
  using knot = std::pair<std::int64_t, double>;

  explicit table_schedule(std::span<knot const> knots, between_knots between = between_knots::linear)
      : count_(int(knots.size())), between_(between) {
    detail::require(!knots.empty() && knots.size() <= N, "table_schedule", "the number of knots",
                    ("1 to " + std::to_string(N)).c_str(), knots.size());
    for (std::size_t i = 0; i < knots.size(); ++i) {
      auto const [step, value] = knots[i];
      std::string const which = " of knot " + std::to_string(i);
      detail::require(step >= 0, "table_schedule", ("the step" + which).c_str(), "at least 0", step);
      detail::require(i == 0 || step > step_[i - 1], "table_schedule", ("the step" + which).c_str(),
                      "above the one before", step);
      detail::require_finite("table_schedule", ("the value" + which).c_str(), value);
      step_[i] = step, value_[i] = value;
    }
  }
  table_schedule(std::initializer_list<knot> knots, between_knots between = between_knots::linear)
      : table_schedule(std::span<knot const>(knots.begin(), knots.size()), between) {}

  /// The number of knots.
  int knots() const { return count_; }

  DESCENT_HD double operator()(std::int64_t t) const {
    int i = 0;
    while (i + 1 < count_ && step_[i + 1] <= t) ++i;
    if (t <= step_[i] || i + 1 == count_ || between_ == between_knots::constant) return value_[i];
    return value_[i] + (value_[i + 1] - value_[i]) * (double(t - step_[i]) / double(step_[i + 1] - step_[i]));
  }
  std::int64_t length() const { return step_[count_ - 1]; }  ///< see has_length
  /// See core/fields.hpp.
  template <class F> void each_field(F const& f) {
    f("knots", count_), f("between", between_), f("step", step_), f("value", value_);
  }

 private:
  int count_;
  between_knots between_;
  std::int64_t step_[std::size_t(N)] = {};
  double value_[std::size_t(N)] = {};
};
static_assert(schedule<table_schedule<>>);

}  // namespace descent
