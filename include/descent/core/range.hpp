// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>
#include <descent/core/math.hpp>
#include <descent/core/detail/aggregate.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

/// Which values the fields of a rule or a policy may have, as data. A rule lists its number fields:
///
///     static constexpr field_range<qhm> ranges[] = {{&qhm::lr, at_least_0}, {&qhm::beta, below_1}};
///
/// The optimizer checks them in the type of the arithmetic where a rule is given, and in each step those that follow a
/// schedule: a step with another value is skipped, and report() names the field. explain() and any_optimizer read them.
/// A rule without ranges is not checked, except by its own check().
namespace descent {

/// The numbers that a field may have. Give the members in order, without their names: nvcc with clang as its host
/// compiler takes 0 for a default between two named ones.
struct interval {
  static constexpr double largest = std::numeric_limits<double>::max();  ///< the end where there is no limit

  double low = -largest, high = largest;  ///< both are finite
  char const* text = "finite";            ///< in messages: "lr must be ..."
  bool above = false, below = false;      ///< whether low, and high, is left out
  bool infinite = false;                  ///< whether infinity is allowed, too

  /// Whether x is in the interval.
  DESCENT_HD constexpr bool has(double x) const {
    if (is_nan(x)) return false;
    if (!is_finite(x)) return infinite && x > 0;
    return (above ? x > low : x >= low) && (below ? x < high : x <= high);
  }
  /// Whether arithmetic in Real may use x: it must be finite in Real, too, unless infinity is allowed. If 0 is left
  /// out, it must be at least the smallest normal number, because smaller ones may be rounded or flushed to 0.
  template <class Real> DESCENT_HD constexpr bool holds(double x) const {
    constexpr Real least = sizeof(Real) == sizeof(float) ? Real(0x1p-126) : Real(0x1p-1022);
    Real const y = Real(x);
    return has(x) && (is_finite(y) || infinite) && !(above && low == 0 && y < least);
  }
};

/// The usual intervals. Infinity is left out, except in the last two.
inline constexpr double no_limit = interval::largest;
inline constexpr interval any_finite{}, at_least_0{0, no_limit, "finite and at least 0"},
    above_0{0, no_limit, "finite and above 0", true}, below_1{0, 1, "in [0, 1)", false, true},
    up_to_1{0, 1, "in [0, 1]"}, above_0_to_1{0, 1, "in (0, 1]", true}, inside_0_1{0, 1, "in (0, 1)", true, true},
    from_1{1, no_limit, "at least 1"}, above_1{1, no_limit, "finite and above 1", true},
    at_least_0_or_infinite{0, no_limit, "at least 0", false, false, true},
    above_0_or_infinite{0, no_limit, "above 0", true, false, true};

/// A field of a rule, or of a policy, and its interval.
template <class Rule> struct field_range {
  using rule = Rule;  ///< whose field it is
  /// A pointer to a member. nvcc writes T(Rule::*x) where it stands by itself, of which GCC warns.
  template <class T> using member = std::type_identity_t<T Rule::*>;

  interval allowed;                      ///< its values
  member<double> real = nullptr;         ///< one of the three is the field
  member<int> whole = nullptr;           ///< see real
  member<std::int64_t> large = nullptr;  ///< see real

  constexpr field_range(member<double> field, interval x) : allowed(x), real(field) {}
  constexpr field_range(member<int> field, interval x) : allowed(x), whole(field) {}
  constexpr field_range(member<std::int64_t> field, interval x) : allowed(x), large(field) {}

  /// The field of this rule, and its address.
  constexpr double of(Rule const& r) const { return real ? r.*real : whole ? double(r.*whole) : double(r.*large); }
  void const* at(Rule const& r) const {
    if (real) return &(r.*real);
    if (whole) return &(r.*whole);
    return &(r.*large);
  }
  /// The field's name, which is found by its place in a rule.
  [[gnu::cold]] std::string name(Rule r) const {
    static_assert(
        detail::has_names_of_fields<Rule>,
        "ranges: the names of the fields cannot be read, because this is not an aggregate of at most 32 fields; "
        "list them: template <class F> void each_field(F const& f) { f(\"width\", width); }");
    if constexpr (detail::lists_fields<Rule>) {
      std::string found = "a field that each_field() leaves out";
      r.each_field([&](std::string_view called, auto& field) {
        if (&field == at(r)) found = called;
      });
      return found;
    } else {
      return detail::name_of_member(r, at(r));
    }
  }
};

/// Ranges: `static constexpr field_range<R> ranges[] = {...};`
template <class R> concept has_ranges = requires { R::ranges[0].allowed; };

namespace detail {

template <class Rule> constexpr char const* spelled_rule() { return __PRETTY_FUNCTION__; }
/// The name of a rule's type, without namespaces and arguments, or that which it gives itself.
template <class Rule> std::string rule_name() {
  if constexpr (requires { Rule::called; }) return Rule::called;
  std::string text = spelled_rule<Rule>();
  text.erase(0, text.find("Rule = ") + 7);
  text.resize(text.find_first_of("<];"));
  auto const colon = text.rfind(':');
  return colon == std::string::npos ? text : text.substr(colon + 1);
}

/// What a field must be, for a value that holds<Real>() refuses.
template <class Real> std::string allowed_text(interval const& allowed, double x) {
  if (!allowed.has(x)) return allowed.text;
  std::string const in = std::is_same_v<Real, float> ? " in float" : " in double";
  if (!is_finite(Real(x))) return "finite" + in;
  return "above 0" + in + ", at least " + number(std::numeric_limits<Real>::min());
}

/// Throws std::invalid_argument if a field that the rule lists is out of its range, or cannot be used in Real.
template <class Real = double, class Rule> void check_ranges(Rule const& rule) {
  if constexpr (has_ranges<Rule>)
    for (auto const& range : Rule::ranges)
      if (double const x = range.of(rule); !range.allowed.template holds<Real>(x))
        refuse(rule_name<Rule>().c_str(), range.name(rule).c_str(), allowed_text<Real>(range.allowed, x).c_str(), x);
}

}  // namespace detail

/// Throws std::invalid_argument if a field of a rule or a policy, or of a part of it, is out of its range, cannot be
/// used in Real, the type of the arithmetic, or is refused by its own check(). Optimizers call it; call it yourself
/// where you use a rule without one.
template <class Real = double, class Rule> void check_rule(Rule const& rule) {
  if constexpr (requires { rule.each_part(0); }) {
    rule.each_part([](auto const& part) { check_rule<Real>(part); });
  } else {
    if constexpr (requires { rule.rule.lr; } || requires { typename Rule::matrix_rule; }) check_rule<Real>(rule.rule);
    detail::check_ranges<Real>(rule);
    if constexpr (requires { rule.check(); }) rule.check();
  }
}

namespace detail {

template <class> struct member_pointer;
template <class Rule, class T> struct member_pointer<T Rule::*> { using rule = Rule; using field = T; };

/// The range of a field of Rule: that which Rule lists, or the class that has the field, such as a part of a chain.
template <class Rule, auto Field> struct range_of {
 private:
  using owner = typename member_pointer<decltype(Field)>::rule;
  struct found { std::string_view name; interval allowed; };
  template <class List> static constexpr found in() {
    for (auto const& x : List::ranges)
      if (x.real == Field) return {name_of_field<Field>, x.allowed};
    return {};
  }
  static constexpr found find() {
    if constexpr (has_ranges<Rule>)
      if constexpr (std::is_base_of_v<owner, typename std::remove_cvref_t<decltype(Rule::ranges[0])>::rule>)
        return in<Rule>();
    if constexpr (has_ranges<owner>) return in<owner>();
    return {};
  }

 public:
  static constexpr found value = find();
  static constexpr bool known = !value.name.empty();

  template <class Real> DESCENT_HD static bool holds(double x) {
    if constexpr (known) {
      constexpr interval allowed = value.allowed;
      return allowed.template holds<Real>(x);
    } else {
      return true;
    }
  }
};

}  // namespace detail
}  // namespace descent
