// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace descent {

/// A schedule that also depends on the group of parameters: `double operator()(std::int64_t step, int group)`.
template <class S>
concept group_schedule = std::is_trivially_copyable_v<S> && requires(S const s, std::int64_t step, int group) {
  { s(step, group) } -> std::same_as<double>;
};

namespace detail {
template <std::size_t I, class S> struct numbered { S schedule; };
template <class Numbers, class... S> struct in_order;
template <std::size_t... I, class... S>
struct in_order<std::index_sequence<I...>, S...> : numbered<I, S>... {
  DESCENT_CALLS
  template <class F> DESCENT_HD void each(F const& f) const {
    (f(int(I), static_cast<numbered<I, S> const&>(*this).schedule), ...);
  }
};
}  // namespace detail

/// One schedule for each group, in the order of the groups: `learning_rate(per_group{slow, fast})`. There must be as
/// many schedules as groups. A group that gathered() adds follows the first.
template <schedule... S> class per_group : detail::in_order<std::index_sequence_for<S...>, S...> {
  using base = detail::in_order<std::index_sequence_for<S...>, S...>;

 public:
  static_assert(sizeof...(S) > 0, "per_group{schedules...}: give one schedule for each group");
  constexpr per_group(S... s) : base{{s}...} {}

  DESCENT_HD double operator()(std::int64_t step, int group) const {
    double value = 0;
    base::each([&](int i, auto const& s) {
      if (i == (group < int(sizeof...(S)) ? group : 0)) value = s(step);
    });
    return value;
  }

  void check() const {
    base::each([](int i, auto const& s) { check_one(i, s); });
  }
  /// Throws std::invalid_argument if the numbers differ. groups is 0 if it is not known yet.
  void check_groups(int groups) const {
    if (groups > 0 && groups != int(sizeof...(S)))
      throw std::invalid_argument("per_group: must have one schedule for each group, so " + std::to_string(groups) +
                                  ", has " + std::to_string(sizeof...(S)));
  }

 private:
  template <class One> static void check_one([[maybe_unused]] int i, [[maybe_unused]] One const& s) try {
    if constexpr (requires { s.check(); }) s.check();
  } catch (std::invalid_argument const& e) {
    throw std::invalid_argument("group " + std::to_string(i) + ": " + e.what());
  }
};

}  // namespace descent
