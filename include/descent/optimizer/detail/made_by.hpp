// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/precision.hpp>
#include <descent/engine/step/plan.hpp>

#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

/// What a run was made with, as text that is saved with it.
namespace descent::detail {

template <class Typed> struct matrix_plan;

template <class T> constexpr char const* spelled_type() { return __PRETTY_FUNCTION__; }

/// "adamw" for descent::adamw, "mine::rule" for a user's rule. Omits what g++, clang++ and nvcc spell differently:
/// template arguments, and functions and unnamed namespaces around the type.
template <class T> std::string plain_name() {
  std::string_view const text = spelled_type<T>();  // "... [with T = descent::adamw]"
  std::size_t end = text.find_last_of(']');
  if (text[end - 1] == '>') {
    int depth = 0;
    do --end, depth += (text[end] == '>') - (text[end] == '<');
    while (depth > 0);
  }
  auto const word_before = [&](std::size_t i) {
    std::size_t const stop = i;
    while (i > 0 && (std::isalnum(static_cast<unsigned char>(text[i - 1])) || text[i - 1] == '_')) --i;
    return text.substr(i, stop - i);
  };
  std::string_view word = word_before(end);
  if (word.empty()) return "unnamed";
  std::string name(word);
  for (std::size_t i = end - word.size(); i > 2 && text[i - 1] == ':'; i -= word.size()) {
    word = word_before(i -= 2);
    if (word.empty() || word == "descent" || word.starts_with("_GLOBAL__N")) break;  // the latter: unnamed in nvcc
    name = std::string(word) + "::" + name;
  }
  return name;
}

/// The same with the template arguments, if all are types: "chain<gradient_trace, adam>".
template <class T> struct full_name {
  static std::string text() { return plain_name<T>(); }
};
template <template <class...> class Template, class First, class... Rest> struct full_name<Template<First, Rest...>> {
  static std::string text() {
    return plain_name<Template<First, Rest...>>() + "<" + full_name<First>::text() +
           ("" + ... + (", " + full_name<Rest>::text())) + ">";
  }
};

/// ", state float", or ", state float and bfloat16" if the members are stored in several types.
template <class Plan> std::string types_of_state() {
  constexpr std::size_t several = has_one_state_type<Plan> ? Plan::slots > 0 : Plan::slots;
  std::string text;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((text += (I == 0 ? ", state " : " and ") + std::string(type_name<typename Plan::template slot<I>>())), ...);
  }(std::make_index_sequence<several>{});
  return text;
}

/// The rule and what else gives saved pieces their meaning, such as "adamw, state float, master float, ema float". The
/// same on the host and on CUDA, and for any number of ranks. Omits hyperparameters, schedules and policies that keep
/// nothing, because a run may continue with others.
template <class Plan> std::string made_by() {
  std::string text = full_name<typename Plan::rule>::text() + types_of_state<Plan>();
  if constexpr (Plan::has_matrices)
    text += ", matrices " + full_name<typename Plan::matrix_rule>::text() + types_of_state<matrix_plan<Plan>>();
  if constexpr (Plan::has_master) text += std::string(", master ") + type_name<typename Plan::master>();
  if constexpr (Plan::has_remainder) text += ", master_remainder";
  if constexpr (has<Plan, kind::average>)
    text += ", " + full_name<typename Plan::average>::text() + " " + type_name<typename Plan::real>();
  if constexpr (has<Plan, kind::lookahead>)
    text += std::string(Plan::leads       ? ", ema_nesterov "
                        : Plan::has_outer ? ", outer "
                                          : ", lookahead ") +
            type_name<typename Plan::slow>();
  if constexpr (has<Plan, kind::loss_scale> && !Plan::shares_scale)
    text += ", " + full_name<typename Plan::loss_scale>::text();
  if constexpr (has<Plan, kind::plateau>) text += ", " + full_name<typename Plan::plateau>::text();
  if constexpr (Plan::per_row_step) text += ", updates of rows";
  return text;
}

}  // namespace descent::detail
