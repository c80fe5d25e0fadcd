// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstddef>
#include <string>
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

/// The largest number of fields that can initialize T, which takes Low, but not High.
template <class T, std::size_t Low, std::size_t High> constexpr std::size_t count_between() {
  constexpr std::size_t middle = (Low + High) / 2;
  if constexpr (middle == Low) return Low;
  else if constexpr (takes_fields<T>(std::make_index_sequence<middle>{})) return count_between<T, middle, High>();
  else return count_between<T, Low, middle>();
}
/// The same up to N. If T{} is valid, T takes all numbers of fields below the largest.
template <class T, std::size_t N> constexpr std::size_t count_taken() {
  if constexpr (N == 0 || takes_fields<T>(std::make_index_sequence<N>{})) return N;
  else if constexpr (requires { T{}; }) return count_between<T, 0, N>();
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
/// The number of fields; most_fields + 1 if it cannot be found: private fields, too many, a base class beside fields or
/// other bases, or a first field that is a reference.
template <class T> constexpr std::size_t count_fields() {
  constexpr std::size_t unknown = most_fields + 1;
  if constexpr (!std::is_aggregate_v<T> || std::is_array_v<T>) return unknown;
  else if constexpr (std::is_empty_v<T>) return 0;
  else if constexpr (requires { T{any_base<T>{}, any_field<T>{}}; } || requires { T{any_base<T>{}, any_base<T>{}}; })
    return unknown;
  else if constexpr (requires { T{any_base<T>{}}; }) return count_in_base<T, unknown>();
  else if constexpr (count_taken<T, unknown>() == 0) return unknown;
  else return count_braced<T, count_taken<T, unknown>()>();
}
template <class T> inline constexpr bool has_known_fields = count_fields<std::remove_cv_t<T>>() <= most_fields;

/// What the call of all fields returns.
template <class T, class Call> constexpr auto with_members(T& all, Call const& call) {
  constexpr std::size_t fields = count_fields<std::remove_cv_t<T>>();
  if constexpr (fields == 0) return call();
#define DESCENT_FIELDS(count, ...)      \
  else if constexpr (fields == count) { \
    auto& [__VA_ARGS__] = all;          \
    return call(__VA_ARGS__);           \
  }
  DESCENT_FIELDS(1, a)
  DESCENT_FIELDS(2, a, b)
  DESCENT_FIELDS(3, a, b, c)
  DESCENT_FIELDS(4, a, b, c, d)
  DESCENT_FIELDS(5, a, b, c, d, e)
  DESCENT_FIELDS(6, a, b, c, d, e, f)
  DESCENT_FIELDS(7, a, b, c, d, e, f, g)
  DESCENT_FIELDS(8, a, b, c, d, e, f, g, h)
  DESCENT_FIELDS(9, a, b, c, d, e, f, g, h, i)
  DESCENT_FIELDS(10, a, b, c, d, e, f, g, h, i, j)
  DESCENT_FIELDS(11, a, b, c, d, e, f, g, h, i, j, k)
  DESCENT_FIELDS(12, a, b, c, d, e, f, g, h, i, j, k, l)
  DESCENT_FIELDS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  DESCENT_FIELDS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  DESCENT_FIELDS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  DESCENT_FIELDS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  DESCENT_FIELDS(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
  DESCENT_FIELDS(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
  DESCENT_FIELDS(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
  DESCENT_FIELDS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  DESCENT_FIELDS(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
  DESCENT_FIELDS(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
  DESCENT_FIELDS(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
  DESCENT_FIELDS(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
  DESCENT_FIELDS(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
  DESCENT_FIELDS(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
  DESCENT_FIELDS(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A)
  DESCENT_FIELDS(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B)
  DESCENT_FIELDS(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C)
  DESCENT_FIELDS(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D)
  DESCENT_FIELDS(31, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E)
  DESCENT_FIELDS(32, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F)
#undef DESCENT_FIELDS
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
template <auto Value> constexpr char const* spelled_value() { return __PRETTY_FUNCTION__; }
/// A std::tuple of pointers would cost compilers a megabyte for each field.
template <std::size_t I, class T> struct numbered_address { T* of; };
template <class, class... Ts> struct addresses;
template <std::size_t... I, class... Ts>
struct addresses<std::index_sequence<I...>, Ts...> : numbered_address<I, Ts>... {};
template <std::size_t I, class T> constexpr address<T*> get_address(numbered_address<I, T> const& x) { return {x.of}; }
template <class T> constexpr auto addresses_of_members() {  // a variable would need a definition of `nowhere`
  return with_members(nowhere<T>.value, []<class... Ts>(Ts&... one) {
    return addresses<std::index_sequence_for<Ts...>, Ts...>{{&one}...};
  });
}

/// The name at the end: GCC writes {(& nowhere<T>.value.T::name)}], clang {&nowhere.value.name}], both &T::name].
constexpr std::string_view last_name(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(")}]") + 1);
  return text.substr(text.find_last_of(":.") + 1);
}
/// A name without what the compiler spells around it, which a program then does not keep.
template <std::size_t N> struct letters {
  char text[N];
  constexpr explicit letters(std::string_view name) : text() {
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};
template <auto Field>
inline constexpr letters<last_name(spelled_value<Field>()).size()> letters_of(last_name(spelled_value<Field>()));
/// The name of a field from its address, or from a pointer to it as a member.
template <auto Field>
inline constexpr std::string_view name_of_field(letters_of<Field>.text, sizeof letters_of<Field>.text);
template <class T, std::size_t I>
inline constexpr std::string_view member_name = name_of_field<get_address<I>(addresses_of_members<T>())>;
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// Calls f(name, field) for each field of an aggregate.
template <class T, class F> void each_member(T& x, F const& f) {
  with_members(x, [&](auto&... one) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f(member_name<std::remove_cv_t<T>, I>, one), ...);
    }(std::index_sequence_for<decltype(one)...>{});
  });
}

inline std::string name_at(void const* place, void const* const* places, std::string_view const* names) {
  while (*places != place) ++places, ++names;
  return std::string(*names);
}
/// The name of the field of an aggregate that is at this place.
template <class T> std::string name_of_member(T const& x, void const* place) {
  return with_members(x, [&](auto const&... one) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      static constexpr std::string_view names[] = {member_name<T, I>...};
      void const* const places[] = {&one...};
      return name_at(place, places, names);
    }(std::index_sequence_for<decltype(one)...>());
  });
}

/// Takes any fields. Not a lambda: nvcc then denies that a class template lists its fields.
struct take_fields { template <class... Ts> void operator()(Ts const&...) const {} };
/// Whether a class gives the names of its fields itself.
template <class T> concept lists_fields = requires(T& x) { x.each_field(take_fields{}); };
template <class T> concept has_names_of_fields = lists_fields<T> || has_known_fields<T>;
/// Calls f(name, field) for each field that the class lists, or each of an aggregate.
template <has_names_of_fields T, class F> void each_named_field(T& x, F const& f) {
  if constexpr (lists_fields<T>) x.each_field(f);
  else each_member(x, f);
}

template <class T> inline constexpr bool is_scoped = false;
template <class T> requires std::is_enum_v<T>
inline constexpr bool is_scoped<T> = !std::is_convertible_v<T, std::underlying_type_t<T>>;

/// The name of an enumerator below 32; empty if there is none of this value, which is spelled as a cast.
template <auto Value> constexpr std::string_view name_of_value() {
  std::string_view text = spelled_value<Value>();
  text = text.substr(text.find("= ") + 2);
  text = text.substr(0, text.find(']'));
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
