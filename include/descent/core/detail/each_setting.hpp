// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/aggregate.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace descent {

/// See transforms/chain.hpp.
template <class... Parts> class chain;

/// All numbers and enumerations in a rule, a policy, a schedule or any other aggregate, with their names.
namespace detail {

/// The name of a field, or its number, inside of what contains it. It becomes text only where one is needed.
struct setting_name {
  static constexpr std::size_t no_number = ~std::size_t{0};

  setting_name const* outer = nullptr;
  std::string_view last = {};
  std::size_t number = no_number;

  std::string text() const {
    std::string const before = outer ? outer->text() : "",
                      own = number == no_number ? std::string(last) : std::to_string(number);
    return before + (before.empty() || own.empty() ? "" : ".") + own;
  }
};

template <class T> inline constexpr std::size_t chain_length = 0;
template <class... Parts> inline constexpr std::size_t chain_length<chain<Parts...>> = sizeof...(Parts);

template <class T> constexpr bool has_named_settings();
/// Whether the fields of all types in C<Ts...> can be read, such as those of the schedules in join<S...>.
template <class T> inline constexpr bool has_known_arguments = true;
template <template <class...> class C, class... Ts>
inline constexpr bool has_known_arguments<C<Ts...>> = (has_named_settings<Ts>() && ...);

/// Whether all are true. What is between the braces of all_true{...} is evaluated in order.
template <bool... All> struct all_true : std::bool_constant<(All && ...)> {
  constexpr all_true(std::bool_constant<All>...) {}
};

/// Calls f(name, field) for each number and enumeration in x, in order: also in structures (structure.field), lists
/// (list.0), a chain's parts (0.field) and what a class lists itself, which is then all that it has, besides what its
/// template's arguments hide. Pointers are left out. Returns a constant: false if x, or something in it, is no
/// aggregate with known fields, whose fields are left out, too.
template <class T, class F> auto walk_settings(T& x, setting_name const& name, F const& f) {
  using type = std::remove_cv_t<T>;
  if constexpr (std::is_arithmetic_v<type> || std::is_enum_v<type>) {
    f(name, x);
    return std::true_type();
  } else if constexpr (std::is_scalar_v<type>) {
    return std::true_type();
  } else if constexpr (lists_fields<T>) {
    x.each_field([&](std::string_view called, auto& field) { walk_settings(field, setting_name{&name, called}, f); });
    if constexpr (requires { x.rule.lr; }) return walk_settings(x.rule, setting_name{&name, "rule"}, f);
    else return std::bool_constant<has_known_arguments<type>>();
  } else if constexpr (chain_length<type> > 0) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return all_true{
          walk_settings(x.template get<I>(), I + 1 < chain_length<type> ? setting_name{&name, {}, I} : name, f)...};
    }(std::make_index_sequence<chain_length<type>>());
  } else if constexpr (requires { std::tuple_size<type>::value; }) {
    std::size_t i = 0;
    return std::apply([&](auto&... one) { return all_true{walk_settings(one, setting_name{&name, {}, i++}, f)...}; },
                      x);
  } else if constexpr (std::is_array_v<type>) {
    for (std::size_t i = 0; i < std::size(x); ++i) walk_settings(x[i], setting_name{&name, {}, i}, f);
    return decltype(walk_settings(x[0], name, f))();
  } else if constexpr (has_known_fields<type>) {
    return with_members(x, [&](auto&... one) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return all_true{walk_settings(one, setting_name{&name, member_name<type, I>}, f)...};
      }(std::index_sequence_for<decltype(one)...>());
    });
  } else {
    return std::false_type();
  }
}

/// Calls f(name, field) with names as text, which begin with the prefix.
template <class T, class F> void each_setting(T& x, std::string const& prefix, F const& f) {
  walk_settings(x, setting_name{nullptr, prefix},
                [&](setting_name const& name, auto& field) { f(name.text(), field); });
}
/// Calls f(number) for each. Returns false, after f for some numbers, if not all can be read.
template <class T, class F> bool each_number(T const& x, F const& f) {
  return walk_settings(x, setting_name{}, [&](setting_name const&, auto const& number) { f(number); }).value;
}
/// Whether all fields can be read.
template <class T> constexpr bool has_named_settings() {
  constexpr auto ignore = [](auto const&...) {};
  return decltype(walk_settings(std::declval<std::remove_cvref_t<T>&>(), setting_name{}, ignore))::value;
}

}  // namespace detail
}  // namespace descent
