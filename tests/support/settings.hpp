// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/fields.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace test {

/// Changes all settings of a rule, writes them as text and reads them into one with the defaults, which has the same
/// then. Returns how many there are.
template <class Rule> int settings_in_text(Rule const& of) {
  static_assert(descent::detail::has_named_settings<Rule>());
  using text = std::vector<std::pair<std::string, std::string>>;
  auto const texts_of = [](Rule& rule) {
    text all;
    descent::detail::each_setting(rule, "", [&](std::string const& name, auto const& x) {
      all.emplace_back(name, descent::detail::text_of_setting(x));
    });
    return all;
  };
  Rule changed = of, read = of;
  descent::detail::each_setting(changed, "", []<class T>(std::string const&, T& x) {
    if constexpr (std::is_same_v<T, bool>) x = !x;
    else if constexpr (std::is_enum_v<T>) x = T(int(x) == 0);
    else x = x == T(1) ? T(2) : T(1);
  });
  text const before = texts_of(read), wanted = texts_of(changed);
  std::size_t i = 0;
  descent::detail::each_setting(read, "", [&](std::string const& name, auto& x) {
    INFO(name);
    CHECK(wanted[i].first == name);
    CHECK(wanted[i].second != before[i].second);
    CHECK(descent::detail::set_from_text(x, wanted[i++].second));
    CHECK_FALSE(descent::detail::set_from_text(x, "neither a number nor a name"));
  });
  CHECK(texts_of(read) == wanted);
  return int(i);
}

}  // namespace test
