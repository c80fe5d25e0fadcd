// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// The fields of any aggregate, and the names of fields and enumerators, at compile time.
namespace descent::detail {

/// Stands for a field of any type, but not for a base class.
template <class Whole> struct any_field {
  template <class T> requires(!std::is_base_of_v<T, Whole>) operator T() const;
};
template <class Whole> struct any_base {
  template <class T> requires(std::is_base_of_v<T, Whole> && !std::is_same_v<T, Whole>) operator T() const;
};

template <class Whole, std::size_t> using numbered_field = any_field<Whole>;
template <class T, std::size_t... I> constexpr bool takes_fields(std::index_sequence<I...>) {
  return requires { T{numbered_field<T, I>{}...}; };
}
/// The same with braces around each field, so that an array counts as one field.
template <class T, std::size_t... I> constexpr bool takes_braced_fields(std::index_sequence<I...>) {
  return requires { T{{numbered_field<T, I>{}}...}; };
}

inline constexpr std::size_t most_fields = 32;

/// The largest number of fields, up to N, that can initialize T.
template <class T, std::size_t N> constexpr std::size_t count_taken() {
  if constexpr (N == 0 || takes_fields<T>(std::make_index_sequence<N>{})) return N;
  else return count_taken<T, N - 1>();
}
/// The same for the fields of a base class.
template <class T, std::size_t... I> constexpr bool takes_fields_of_base(std::index_sequence<I...>) {
  return requires { T{{{numbered_field<T, I>{}}...}}; };
}
template <class T, std::size_t N> constexpr std::size_t count_in_base() {
  if constexpr (N == 0 || takes_fields_of_base<T>(std::make_index_sequence<N>{})) return N;
  else return count_in_base<T, N - 1>();
}
template <class T, std::size_t N> constexpr std::size_t count_braced() {
  if constexpr (N == 0 || takes_braced_fields<T>(std::make_index_sequence<N>{})) return N;
  else return count_braced<T, N - 1>();
}
/// The number of fields; most_fields + 1 if it cannot be found: private fields, too many, or a base class beside fields
/// or other bases.
template <class T> constexpr std::size_t count_fields() {
  constexpr std::size_t unknown = most_fields + 1;
  if constexpr (!std::is_aggregate_v<T> || std::is_array_v<T>) return unknown;
  else if constexpr (std::is_empty_v<T>) return 0;
  else if constexpr (requires { T{any_base<T>{}, any_field<T>{}}; } || requires { T{any_base<T>{}, any_base<T>{}}; })
    return unknown;
  else if constexpr (requires { T{any_base<T>{}}; }) return count_in_base<T, unknown>();
  else return count_braced<T, count_taken<T, unknown>()>();
}
template <class T> inline constexpr bool has_known_fields = count_fields<std::remove_cv_t<T>>() <= most_fields;

/// The fields as a tuple of references.
template <class T> constexpr auto tied(T& all) {
  constexpr std::size_t fields = count_fields<std::remove_cv_t<T>>();
  if constexpr (fields == 0) return std::tuple<>();
#define DESCENT_TIED(count, ...)        \
  else if constexpr (fields == count) { \
    auto& [__VA_ARGS__] = all;          \
    return std::tie(__VA_ARGS__);       \
  }
  DESCENT_TIED(1, a)
  DESCENT_TIED(2, a, b)
  DESCENT_TIED(3, a, b, c)
  DESCENT_TIED(4, a, b, c, d)
  DESCENT_TIED(5, a, b, c, d, e)
  DESCENT_TIED(6, a, b, c, d, e, f)
  DESCENT_TIED(7, a, b, c, d, e, f, g)
  DESCENT_TIED(8, a, b, c, d, e, f, g, h)
  DESCENT_TIED(9, a, b, c, d, e, f, g, h, i)
  DESCENT_TIED(10, a, b, c, d, e, f, g, h, i, j)
  DESCENT_TIED(11, a, b, c, d, e, f, g, h, i, j, k)
  DESCENT_TIED(12, a, b, c, d, e, f, g, h, i, j, k, l)
  DESCENT_TIED(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  DESCENT_TIED(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  DESCENT_TIED(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  DESCENT_TIED(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  DESCENT_TIED(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
  DESCENT_TIED(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
  DESCENT_TIED(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
  DESCENT_TIED(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  DESCENT_TIED(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
  DESCENT_TIED(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
  DESCENT_TIED(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
  DESCENT_TIED(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
  DESCENT_TIED(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
  DESCENT_TIED(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
  DESCENT_TIED(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A)
  DESCENT_TIED(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B)
  DESCENT_TIED(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C)
  DESCENT_TIED(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D)
  DESCENT_TIED(31, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E)
  DESCENT_TIED(32, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F)
#undef DESCENT_TIED
}

template <class T> struct placed_anywhere { T const value; };
/// An object that has no definition: only the addresses of its fields are asked for.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T> extern placed_anywhere<T> const nowhere;
template <class T> struct address { T of; };
template <class T> address(T) -> address<T>;
template <auto Value> constexpr std::string_view spelled_value() { return __PRETTY_FUNCTION__; }
template <class T> constexpr auto addresses_of_members() {
  return std::apply([](auto&... one) { return std::tuple(&one...); }, tied(nowhere<T>.value));
}
template <class T, std::size_t I>
inline constexpr std::string_view spelled_member = spelled_value<address{std::get<I>(addresses_of_members<T>())}>();
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// The name at the end of the last braces: GCC writes (& nowhere<T>.value.T::name), clang &nowhere.value.name.
constexpr std::string_view last_name(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(")", text.rfind('}') - 1) + 1);
  return text.substr(text.find_last_of(":.") + 1);
}
template <class T, std::size_t I> inline constexpr std::string_view member_name = last_name(spelled_member<T, I>);

/// Calls f(name, field) for each field of an aggregate.
template <class T, class F> void each_member(T& x, F const& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    [[maybe_unused]] auto const fields = tied(x);
    (f(member_name<std::remove_cv_t<T>, I>, std::get<I>(fields)), ...);
  }(std::make_index_sequence<count_fields<std::remove_cv_t<T>>()>{});
}

template <class T> inline constexpr bool is_scoped = false;
template <class T> requires std::is_enum_v<T>
inline constexpr bool is_scoped<T> = !std::is_convertible_v<T, std::underlying_type_t<T>>;

/// The name of an enumerator below 32; empty if there is none of this value, which is spelled as a cast.
template <auto Value> constexpr std::string_view name_of_value() {
  std::string_view text = spelled_value<Value>();
  text = text.substr(text.find("= ") + 2);
  text = text.substr(0, text.find_first_of(";]"));
  text = text.substr(text.rfind(':') + 1);
  bool const is_number = text.find(')') != text.npos || (text[0] >= '0' && text[0] <= '9');
  return is_number ? "" : text;
}
inline constexpr int most_enumerators = 32;
/// Calls f(name, value) for each enumerator of a scoped enumeration.
template <class Enum, class F> void each_enumerator(F const& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    auto const one = [&]<int Value>(std::integral_constant<int, Value>) {
      constexpr std::string_view name = name_of_value<Enum(Value)>();
      if (!name.empty()) f(name, Enum(Value));
    };
    (one(std::integral_constant<int, I>{}), ...);
  }(std::make_integer_sequence<int, most_enumerators>{});
}

}  // namespace descent::detail
