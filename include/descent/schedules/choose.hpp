// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

/// One of several schedules: the same for all groups, chosen at run time, or a different one for each group.
namespace descent {

namespace detail {
template <class... S> union schedule_union {};
template <class First, class... Rest> union schedule_union<First, Rest...> {
  First first;
  schedule_union<Rest...> rest;

  constexpr explicit schedule_union(First const& s) : first(s) {}
  template <class S> requires(!std::is_same_v<S, First>) constexpr explicit schedule_union(S const& s) : rest(s) {}

  DESCENT_CALLS
  template <class F> DESCENT_HD auto visit(int index, F const& f) const {
    if constexpr (sizeof...(Rest) > 0)
      if (index > 0) return rest.visit(index - 1, f);
    return f(first);
  }
  template <class F> void change(int index, F const& f) {
    if constexpr (sizeof...(Rest) > 0)
      if (index > 0) return rest.change(index - 1, f);
    f(first);
  }
};

template <class S> struct call_schedule {
  std::int64_t step;
  DESCENT_HD double operator()(auto const& s) const { return s(step); }
};

/// The index of T among Ts.
template <class T, class... Ts> constexpr int index_of() {
  int index = 0;
  bool found = false;
  ((found = found || std::is_same_v<T, Ts>, index += !found), ...);
  return index;
}
}  // namespace detail

/// One of several schedules, chosen at run time: a std::variant for host and device. `learning_rate` and similar
/// functions also accept a std::variant and convert it to this type.
template <schedule... S> class any_of {
  static_assert(sizeof...(S) > 0, "any_of<S...>: name the schedules to choose from");

 public:
  template <class T> requires(std::is_same_v<T, S> || ...)
  constexpr any_of(T const& s) : index_(detail::index_of<T, S...>()), one_(s) {}
  constexpr any_of(std::variant<S...> const& v) : any_of(std::visit([](auto const& s) { return any_of(s); }, v)) {}

  constexpr int index() const { return index_; }  ///< of the chosen schedule in S...

  DESCENT_HD double operator()(std::int64_t step) const {
    return one_.visit(index_, detail::call_schedule<any_of>{step});
  }
  /// See has_length.
  std::int64_t length() const requires(has_length<S> && ...) {
    return one_.visit(index_, [](auto const& s) { return s.length(); });
  }

  void check() const {
    one_.visit(index_, [](auto const& s) {
      if constexpr (requires { s.check(); }) s.check();
    });
  }
  /// See core/fields.hpp. f must not change the index.
  template <class F> void each_field(F const& f) {
    f("index", index_);
    one_.change(index_, [&](auto& s) { f("chosen", s); });
  }

 private:
  int index_;
  detail::schedule_union<S...> one_;
};

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
  template <class F> void each_field(F const& f) {
    (f(std::to_string(I), static_cast<numbered<I, S>&>(*this).schedule), ...);
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
  using base::each_field;
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
