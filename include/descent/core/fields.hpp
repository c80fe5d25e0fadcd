// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>
#include <descent/core/detail/aggregate.hpp>
#include <descent/core/detail/each_setting.hpp>
#include <descent/core/detail/floating_point_mode.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

/// The fields of a rule by their names, for settings that are known only at run time.
namespace descent {

namespace detail {

/// Sets a field. False if its type cannot hold the value.
template <class T> bool set_number(T& field, double value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value != 0 && value != 1) return false;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr double most = sizeof(T) < 8 ? double(std::numeric_limits<T>::max()) : 0x1p53;
    if (!(value >= (std::is_signed_v<T> ? -most : 0) && value <= most) || value != std::floor(value)) return false;
  }
  field = T(value);
  return true;
}
/// The numbers that set_number() accepts.
template <class T> std::string numbers_of() {
  if (std::is_same_v<T, bool>) return "0 or 1";
  std::string const most = sizeof(T) < 8 ? number(std::numeric_limits<T>::max()) : "2^53";
  return "a whole number in [" + (std::is_signed_v<T> ? "-" + most : "0") + ", " + most + "]";
}

}  // namespace detail

/// Calls f(name, field) with a std::string and a reference for each field of a rule that is a number, in order: lr,
/// beta1, and so on. The fields of a rule inside another one are called rule.momentum; those of the i-th transform of a
/// chain, from 0 on, i.weight_decay. Lists and enumerations are left out. A rule that is not an aggregate of at most
/// 32 fields, such as one with a base class and fields, lists them:
/// `template <class F> void each_field(F const& f) { f("width", width); }`.
template <class Rule, class F> void each_field(Rule& rule, F const& f) {
  if constexpr (detail::has_names_of_fields<Rule>)
    detail::each_named_field(rule, [&](std::string_view name, auto& field) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(field)>>) f(std::string(name), field);
    });
  if constexpr (requires { rule.rule.lr; })
    each_field(rule.rule, [&](std::string const& name, auto& field) { f("rule." + name, field); });
}
namespace detail {
/// Does it for the I-th part of a chain.
template <std::size_t I, class... Parts, class F> void each_field_of_part(chain<Parts...>& all, F const& f) {
  each_field(all.template get<I>(), [&](std::string const& name, auto& field) {
    f(I + 1 < sizeof...(Parts) ? std::to_string(I) + "." + name : name, field);
  });
}
}  // namespace detail
template <class... Parts, class F> void each_field(chain<Parts...>& all, F const& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (detail::each_field_of_part<I>(all, f), ...);
  }(std::index_sequence_for<Parts...>{});
}

namespace detail {
/// A setting as text, and back: exact. Enumerators have their names.
template <class T> std::string text_of_setting(T const& x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x ? "true" : "false";
  } else if constexpr (is_scoped<T>) {
    std::string text;
    each_enumerator<T>([&](std::string_view name, T value) {
      if (value == x) text = name;
    });
    return text.empty() ? text_of_setting(std::underlying_type_t<T>(x)) : text;
  } else if constexpr (std::is_enum_v<T>) {
    return text_of_setting(std::underlying_type_t<T>(x));
  } else {
    floating_point_scope const standard;  // to_chars compares with 0, as which a thread may take denormal numbers
    char text[40];
    return {text, std::to_chars(text, text + sizeof text, x).ptr};
  }
}
/// False if the setting's type cannot hold what the text says.
template <class T> bool set_from_text(T& x, std::string const& text) {
  if constexpr (std::is_same_v<T, bool>) {
    if (text != "true" && text != "false") return false;
    x = text == "true";
    return true;
  } else if constexpr (is_scoped<T>) {
    bool found = false;
    each_enumerator<T>([&](std::string_view name, T value) {
      if (name == text) x = value, found = true;
    });
    auto other = std::underlying_type_t<T>();  // beyond those whose names are known
    if (found || !set_from_text(other, text)) return found;
    if (std::int64_t const n = std::int64_t(other); n >= 0 && n < most_enumerators) return false;
    x = T(other);
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    auto number = std::underlying_type_t<T>(x);
    if (!set_from_text(number, text)) return false;
    x = T(number);
    return true;
  } else {
    floating_point_scope const standard;  // from_chars rounds as the thread does
    T y{};
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), y);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    x = y;
    return true;
  }
}

/// Calls f(field) for the field of this name.
template <class Rule, class F> void with_field(Rule& rule, std::string const& name, F const& f) {
  bool found = false;
  std::string all;
  each_field(rule, [&](std::string const& called, auto& field) {
    all += (all.empty() ? "" : ", ") + called;
    if (!found && called == name) found = true, f(field);
  });
  if (!found)
    throw std::invalid_argument("the rule has no field '" + name + "'" + (all.empty() ? "" : "; it has " + all));
}
}  // namespace detail

/// Reads and sets a field by its name; a flag is 0 or 1. Throws std::invalid_argument if there is no such field, with
/// the names of all, or if its type cannot hold the value. check() and the optimizer check ranges.
template <class Rule> double get_field(Rule rule, std::string const& name) {
  double value = 0;
  detail::with_field(rule, name, [&](auto const& field) { value = double(field); });
  return value;
}
template <class Rule> void set_field(Rule& rule, std::string const& name, double value) {
  detail::with_field(rule, name, [&](auto& field) {
    if (!detail::set_number(field, value))
      throw std::invalid_argument("the field '" + name + "' must be " +
                                  detail::numbers_of<std::remove_cvref_t<decltype(field)>>() + ", is " +
                                  detail::number(value));
  });
}

namespace detail {
/// The interval of a field, which is a member of this rule or of a part of it.
template <class Rule, class T> void find_interval(Rule const& rule, T const& field, interval& found) {
  if constexpr (requires { rule.each_part(0); }) {
    rule.each_part([&](auto const& part) { find_interval(part, field, found); });
  } else {
    if constexpr (requires { rule.rule.lr; }) find_interval(rule.rule, field, found);
    if constexpr (has_ranges<Rule>)
      for (auto const& range : Rule::ranges)
        if (static_cast<void const*>(&field) == range.at(rule)) found = range.allowed;
  }
}
}  // namespace detail

/// The values that a field may have, by its name. `text` is "0 or 1" for a flag, and "any number" if the rule does not
/// list the field. Throws std::invalid_argument if there is no such field, with the names of all.
template <class Rule> interval get_interval(Rule const& rule, std::string const& name) {
  interval found{-interval::largest, interval::largest, "any number", false, false, true};
  Rule copy = rule;
  detail::with_field(copy, name, [&]<class T>(T const& field) {
    if constexpr (std::is_same_v<T, bool>) found = {0, 1, "0 or 1"};
    else detail::find_interval(copy, field, found);
  });
  return found;
}

/// The rule with each field rounded to float. Where a client's hyperparameters are floats, its 1 - beta differs from
/// that of a double: 1 - 0.999f = 0.00099998712.
template <class Rule> Rule in_floats(Rule rule) {
  each_field(rule, []([[maybe_unused]] std::string const& name, auto& field) {
    if constexpr (std::is_same_v<decltype(field), double&>) field = double(float(field));
  });
  return rule;
}

}  // namespace descent
