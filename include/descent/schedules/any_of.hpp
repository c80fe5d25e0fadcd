// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/schedule.hpp>

#include <variant>

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

  void check() const {
    one_.visit(index_, [](auto const& s) {
      if constexpr (requires { s.check(); }) s.check();
    });
  }

 private:
  int index_;
  detail::schedule_union<S...> one_;
};

}  // namespace descent
