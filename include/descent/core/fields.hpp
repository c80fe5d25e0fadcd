// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/range.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

/// The fields of a rule by their names, for settings that are known only at run time.
namespace descent {

/// See transforms/chain.hpp.
template <class... Parts> class chain;

namespace detail {

/// Calls f(name, field) for each field that is a number and has one of the names that the library's rules use.
template <class Rule, class F> void each_known_field([[maybe_unused]] Rule& rule, [[maybe_unused]] F const& f) {
#define DESCENT_FIELD(field)              \
  if constexpr (requires { rule.field; }) \
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(rule.field)>>) f(std::string(#field), rule.field);
  DESCENT_FIELD(lr) DESCENT_FIELD(final_lr) DESCENT_FIELD(base_lr) DESCENT_FIELD(first_lr) DESCENT_FIELD(max_lr)
  DESCENT_FIELD(lr_decay) DESCENT_FIELD(momentum) DESCENT_FIELD(momentum_decay) DESCENT_FIELD(dampening)
  DESCENT_FIELD(rho) DESCENT_FIELD(beta) DESCENT_FIELD(beta1) DESCENT_FIELD(beta2) DESCENT_FIELD(beta3)
  DESCENT_FIELD(beta2_decay) DESCENT_FIELD(shampoo_beta) DESCENT_FIELD(nu) DESCENT_FIELD(nu1) DESCENT_FIELD(nu2)
  DESCENT_FIELD(alpha) DESCENT_FIELD(gamma) DESCENT_FIELD(partial) DESCENT_FIELD(eps) DESCENT_FIELD(eps1)
  DESCENT_FIELD(eps2) DESCENT_FIELD(eps_root) DESCENT_FIELD(initial) DESCENT_FIELD(weight_decay) DESCENT_FIELD(lambd)
  DESCENT_FIELD(t0) DESCENT_FIELD(power) DESCENT_FIELD(reps) DESCENT_FIELD(d0) DESCENT_FIELD(d_coef)
  DESCENT_FIELD(lower_bound) DESCENT_FIELD(f_min) DESCENT_FIELD(trust) DESCENT_FIELD(rms) DESCENT_FIELD(at_zero)
  DESCENT_FIELD(min_ratio) DESCENT_FIELD(max_ratio) DESCENT_FIELD(min_norm) DESCENT_FIELD(eta_minus)
  DESCENT_FIELD(eta_plus) DESCENT_FIELD(min_step) DESCENT_FIELD(max_step) DESCENT_FIELD(enough) DESCENT_FIELD(nesterov)
  DESCENT_FIELD(correction) DESCENT_FIELD(centered) DESCENT_FIELD(eps_inside) DESCENT_FIELD(eps_hat)
  DESCENT_FIELD(eps_outside) DESCENT_FIELD(eps_added) DESCENT_FIELD(bias_correction) DESCENT_FIELD(lr_inside)
  DESCENT_FIELD(correct_rate) DESCENT_FIELD(decay_after) DESCENT_FIELD(decay_corrected) DESCENT_FIELD(corrected_max)
  DESCENT_FIELD(init_zero) DESCENT_FIELD(undampened_first_step) DESCENT_FIELD(full_first_step)
  DESCENT_FIELD(raw_moment) DESCENT_FIELD(joint_norm) DESCENT_FIELD(clip) DESCENT_FIELD(capped)
  DESCENT_FIELD(relative) DESCENT_FIELD(adapt) DESCENT_FIELD(always) DESCENT_FIELD(plus) DESCENT_FIELD(averaging)
  DESCENT_FIELD(amsgrad) DESCENT_FIELD(amsbound) DESCENT_FIELD(decoupled) DESCENT_FIELD(decay_by_lr)
  DESCENT_FIELD(paper_weight) DESCENT_FIELD(safeguard_warmup) DESCENT_FIELD(graft) DESCENT_FIELD(every)
  DESCENT_FIELD(iterations) DESCENT_FIELD(ns_steps) DESCENT_FIELD(max_precondition_dim) DESCENT_FIELD(factor)
  DESCENT_FIELD(decay) DESCENT_FIELD(debias) DESCENT_FIELD(on) DESCENT_FIELD(scale) DESCENT_FIELD(max)
  DESCENT_FIELD(c) DESCENT_FIELD(eta) DESCENT_FIELD(seed) DESCENT_FIELD(normalize_rows) DESCENT_FIELD(adaptive)
  DESCENT_FIELD(adam) DESCENT_FIELD(clamp)
#undef DESCENT_FIELD
}

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

/// Calls f(name, field) with a std::string and a reference for each field of a rule that is a number: lr, beta1, and so
/// on. The fields of a rule inside another one are called rule.momentum; those of the i-th transform of a chain, from 0
/// on, i.weight_decay. Lists and enumerations are left out. A rule of your own whose fields have other names than those
/// of the library lists them: `template <class F> void each_field(F const& f) { f("width", width); }`.
template <class Rule, class F> void each_field(Rule& rule, F const& f) {
  if constexpr (requires { rule.each_field(f); }) rule.each_field(f);
  else detail::each_known_field(rule, f);
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
