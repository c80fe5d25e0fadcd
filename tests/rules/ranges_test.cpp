// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Every number field of every rule has an interval. A value outside of it is refused by the field's name where a rule
// is given, and skips the step that a schedule gives it to. With a value inside, zero gradients leave finite values.
#include <descent/core/fields.hpp>
#include <descent/schedules/vary.hpp>

#include <doctest/doctest.h>

#include "support/all_rules.hpp"
#include "support/message.hpp"
#include "support/optimizer_of.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

using namespace test;
namespace ds = descent;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();
using of_float = std::numeric_limits<float>;
using of_double = std::numeric_limits<double>;

/// The ends of an interval, what is just outside and inside, and numbers that float has not.
std::vector<double> extremes(ds::interval const& x) {
  std::vector<double> all{not_a_number,       infinity,           -infinity,       of_double::max(),
                          -of_double::max(),  1e39,               of_float::max(), of_float::min(),
                          of_float::denorm_min(), of_double::min(), of_double::denorm_min(), 1e-60,
                          -1e-60,             0.0,                -0.0,            -1.0,
                          1.0};
  for (double const end : {x.low, x.high})
    for (double const to : {-infinity, end, infinity}) all.push_back(std::nextafter(end, to));
  return all;
}

/// Calls f(prefix, range, rule that has the field) for each field that the rule or a part of it lists.
template <class Rule, class F> void each_range(Rule& rule, F const& f, std::string const& prefix = "");
template <std::size_t I, class... Parts, class F> void each_range_of_parts(ds::chain<Parts...>& rule, F const& f) {
  if constexpr (I < sizeof...(Parts)) {
    each_range(rule.template get<I>(), f, I + 1 < sizeof...(Parts) ? std::to_string(I) + "." : "");
    each_range_of_parts<I + 1>(rule, f);
  }
}
template <class Rule, class F> void each_range(Rule& rule, F const& f, std::string const& prefix) {
  if constexpr (requires { rule.each_part(0); }) {
    each_range_of_parts<0>(rule, f);
  } else {
    if constexpr (ds::has_ranges<Rule>)
      for (auto const& range : Rule::ranges) f(prefix, range, rule);
    if constexpr (requires { rule.rule.lr; }) each_range(rule.rule, f, prefix + "rule.");
  }
}
template <class Range, class Rule> void put(Range const& range, Rule& rule, double x) {
  if (range.real) rule.*range.real = x;
  else if (range.whole) rule.*range.whole = int(x);
  else rule.*range.large = std::int64_t(x);
}

/// A schedule for whichever field the test chooses, at one step; otherwise each field would need an optimizer type.
struct any_field {
  using policy_kind = ds::kind::field<nullptr>;
  static inline int chosen = -1;
  static inline double x = 0;
  int schedule = 0;

  template <class Rule> struct field {
    static constexpr bool known = true;
    struct about { std::string name; ds::interval allowed; };
    static inline about value{};
    static double of(Rule const&) { return x; }
    template <class Real> static bool holds(Rule const& rule) {
      bool holds = true;
      int n = 0;
      Rule copy = rule;
      each_range(copy, [&](auto const&, auto const& range, auto const& part) {
        if (n++ != chosen) return;
        holds = range.allowed.template holds<Real>(range.of(part));
        value = {range.name(part), range.allowed};
      });
      return holds;
    }
  };
  template <class Rule> static constexpr field<Rule> field_in() { return {}; }
  template <class Rule> void apply(Rule& rule, std::int64_t step, int) const {
    int n = 0;
    each_range(rule, [&](auto const&, auto const& range, auto& part) {
      if (n++ == chosen && step == 2) put(range, part, x);
    });
  }
  template <class Rule> void forget_in(Rule&, int) const {}
  template <class Rule> static constexpr void require_rule() {}
};

/// Rules of a user whose fields have no names that can be read.
struct with_hidden : ds::sgd {
  double by = 0, other = 0;
  template <class F> void each_field(F const& f) { f("lr", lr), f("by", by); }
  static constexpr ds::field_range<with_hidden> ranges[] = {{&with_hidden::by, ds::below_1},
                                                            {&with_hidden::other, ds::below_1}};
};

}  // namespace

TEST_CASE("a rule that is no aggregate names its fields in messages by each_field(), or is that of its base class") {
  struct only_inherits : ds::sgd { double more = 1; };
  std::array<float, 1> p{}, g{};
  ds::parameters<float> list;
  list.add("p", p.data(), g.data(), 1);
  with_hidden rule;
  rule.by = 1;
  CHECK(message([&] { ds::optimizer{list, rule}; }) == "with_hidden: by must be in [0, 1), is 1");
  rule.by = 0, rule.other = 1;
  CHECK(message([&] { ds::optimizer{list, rule}; }) ==
        "with_hidden: a field that each_field() leaves out must be in [0, 1), is 1");
  only_inherits inherited;
  inherited.lr = -1;
  CHECK(message([&] { ds::optimizer{list, inherited}; }) == "only_inherits: lr must be finite and at least 0, is -1");
}

TEST_CASE("every rule: each number field has an interval, which holds the default") {
  each_rule_once([]<class Rule>() {
    std::set<std::string> listed;
    Rule rule{};
    each_range(rule, [&](std::string const& prefix, auto const& range, auto const& part) {
      CAPTURE(prefix + range.name(part));
      CHECK(listed.insert(prefix + range.name(part)).second);
      CHECK(range.allowed.template holds<float>(range.of(part)));
    });
    ds::each_field(rule, [&](std::string const& name, auto& field) {
      CAPTURE(ds::detail::rule_name<Rule>() + ": " + name);
      if (std::is_same_v<decltype(field), bool&> || std::is_unsigned_v<std::remove_cvref_t<decltype(field)>>) return;
      CHECK(listed.contains(name));
    });
  });
}

TEST_CASE("every rule: values beyond an interval's ends, or that float lacks, are refused by name or harmless") {
  each_rule([]<class Rule>(row<Rule> const& row) {
    Rule rule = row.rule;
    int count = 0;
    each_range(rule, [&](auto&&...) { ++count; });
    for (int chosen = 0; chosen < count; ++chosen) {
      std::string name;
      ds::interval allowed;
      bool real = true;
      int n = 0;
      each_range(rule, [&](std::string const& prefix, auto const& range, auto const& part) {
        if (n++ == chosen) name = prefix + range.name(part), allowed = range.allowed, real = range.real;
      });
      for (double const x : extremes(allowed)) {
        if (!real && !(std::abs(x) < 1e9 && x == std::floor(x))) continue;
        CAPTURE(row.name + ", " + name + ": " + std::to_string(x));
        rule = row.rule;
        n = 0;
        each_range(rule, [&](auto const&, auto const& range, auto& part) {
          if (n++ == chosen) put(range, part, x);
        });
        std::array<float, 2> p{1, 0}, g{};
        ds::parameters<float> list;
        list.add("p", p.data(), g.data(), 2);
        auto const walk = [&](auto& opt) {
          for (int t = 0; t < 4 && std::isfinite(p[0]); ++t) {
            opt.step();
            CHECK((!std::isnan(p[0]) || opt.report().step > 1));  // a large decay may leave an infinity
            CHECK((std::isfinite(p[1]) || (moves_by_itself<Rule> && opt.report().step > 1)));
          }
        };
        std::string const why = message([&] {
          auto opt = optimizer_of(list, rule);
          walk(opt);
        });
        std::string const bare = name.substr(name.rfind('.') + 1);
        bool const holds = allowed.holds<float>(x);
        if (!holds) CHECK(why.find(bare + " must be ") != std::string::npos);
        else if (ds::has_ranges<Rule> && !why.empty())
          CHECK_MESSAGE(why.find(bare) != std::string::npos, why);  // a relation, or an overflow
        if (!real || name.starts_with("rule.")) continue;

        p = {1, 0};
        any_field::chosen = chosen, any_field::x = x;
        auto opt = optimizer_of(list, row.rule, any_field{});
        opt.step(), opt.step();
        auto const before = p;
        walk(opt);
        auto const r = opt.report();
        if (!holds) {
          CHECK(r.why.starts_with(bare + " of group 0 must be "));
          CHECK(r.step == 2);
          CHECK(p == before);
        }
      }
    }
  });
}
