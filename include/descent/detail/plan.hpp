// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/clip.hpp>
#include <descent/rule.hpp>
#include <descent/storage.hpp>
#include <descent/vary.hpp>

#include <array>
#include <cstdint>
#include <utility>

/// What one step does, decided at compile time from the types of parameters, rule and policies.
namespace descent::detail {

template <class T> inline constexpr std::int64_t bytes_of = sizeof(T);
template <> inline constexpr std::int64_t bytes_of<void> = 0;

/// Types by index; one type stands for all.
template <class... Ts> struct type_list {
  template <std::size_t I> static auto pick() {
    if constexpr (sizeof...(Ts) == 1) return pick_from<0, Ts...>();
    else return pick_from<I, Ts...>();
  }
  template <std::size_t I, class T, class... Rest> static auto pick_from() {
    if constexpr (I == 0) return std::type_identity<T>{};
    else return pick_from<I - 1, Rest...>();
  }
  template <std::size_t I> using type = typename decltype(pick<I>())::type;
  static constexpr std::size_t size = sizeof...(Ts);
  static constexpr bool any_double = (std::is_same_v<Ts, double> || ...);
};

template <class P> struct master_type { using type = void; };
template <class M> struct master_type<master<M>> { using type = M; };
template <class P, class Default> struct states_type { using type = type_list<Default>; };
template <class... Ts, class Default> struct states_type<states<Ts...>, Default> { using type = type_list<Ts...>; };

template <class Value, class Gradient, class Rule, class... Ps> struct plan {
  using value = Value;
  using gradient = Gradient;
  using rule = Rule;
  using policies = policy_set<Ps...>;
  using master = typename master_type<policy_of<kind::master, void, Ps...>>::type;

 private:
  using states_policy = policy_of<kind::states, void, Ps...>;
  static constexpr bool any_double = type_list<Value, Gradient, master>::any_double ||
                                     states_type<states_policy, float>::type::any_double;

 public:
  /// The type of the arithmetic.
  using real = std::conditional_t<any_double, double, float>;
  using state_types = typename states_type<states_policy, real>::type;
  static constexpr std::size_t slots = members<Rule::template state>;
  template <std::size_t I> using slot = typename state_types::template type<I>;
  using every_slot = std::make_index_sequence<slots>;

  static constexpr bool has_master = !std::is_void_v<master>;
  /// What the update reads and writes exactly: the master, or the value.
  using exact = std::conditional_t<has_master, master, Value>;

  static constexpr bool clips = count_of<kind::clip, Ps...> > 0;
  static constexpr bool sums = has_sums<Rule>;
  static constexpr bool measures = clips || sums || count_of<kind::finiteness, Ps...> > 0;
  /// Sums need the clip factor first, and it needs the norm: then the norm has a pass of its own.
  static constexpr bool norm_first = clips && sums;

  static constexpr std::size_t sum_count = [] {
    if constexpr (sums) return members<Rule::template sums>;
    else return std::size_t{0};
  }();
  static constexpr bool sums_per_tensor = [] {
    if constexpr (sums) return Rule::sums_over == scope::tensor;
    else return false;
  }();

  static constexpr bool in_update(std::size_t slot) {
    if constexpr (has_state_for_sums<Rule>) return !Rule::for_sums_only(slot);
    else return slot < slots;
  }
  template <std::size_t I> static constexpr bool updates = in_update(I);

  /// Bytes that one step moves for each parameter: in read-only passes, and in the update.
  static constexpr std::int64_t pass_bytes(std::array<bool, slots> const& used) {
    std::int64_t const state = state_bytes(used, [](std::size_t) { return has_sums_of_state<Rule>; });
    std::int64_t const norm = bytes_of<Gradient>, all = norm + bytes_of<exact> + state;
    return (measures && !sums ? norm : 0) + (sums ? all : 0) + (norm_first ? norm : 0);
  }
  static constexpr std::int64_t update_bytes(std::array<bool, slots> const& used) {
    return bytes_of<Gradient> + 2 * bytes_of<exact> + (has_master ? bytes_of<Value> : 0) +
           2 * state_bytes(used, in_update);
  }
  static constexpr int launches = (norm_first ? 2 : 0) + (measures ? 1 : 0) + 2;

 private:
  static constexpr std::int64_t state_bytes(std::array<bool, slots> const& used, auto counts) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (std::int64_t{0} + ... + (used[I] && counts(I) ? bytes_of<slot<I>> : 0));
    }(every_slot{});
  }
};

}  // namespace descent::detail
