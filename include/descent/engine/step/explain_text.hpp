// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/fields.hpp>
#include <descent/core/range.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// The words and lines of explain().
namespace descent::detail {

/// "1 tensor", "3 tensors".
inline std::string counted(std::int64_t n, char const* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

/// One line, or several of at most 120 columns, with a line feed. They break after a comma or, if there is none in the
/// second half, between words; all but the first are indented by two columns more than it.
inline std::string wrapped(std::string rest) {
  constexpr std::size_t columns = 120;
  std::string const indent(rest.find_first_not_of(' ') + 2, ' ');
  std::string text;
  while (rest.size() > columns) {
    std::size_t const comma = rest.rfind(", ", columns - 1), space = rest.rfind(' ', columns);
    std::size_t const end = comma != rest.npos && comma > columns / 2 ? comma + 1 : space;
    if (end == rest.npos || end < indent.size()) break;
    text += rest.substr(0, end) + "\n";
    rest = indent + rest.substr(end + 1);
  }
  return text + rest + "\n";
}

/// A tensor's name in quotes; the middle of a long one is left out.
inline std::string quoted(std::string const& name) {
  constexpr std::size_t most = 48, end = 20;
  if (name.size() <= most) return "'" + name + "'";
  auto const whole = [&](std::size_t i) {  // not inside a character of several bytes
    while (i > 0 && (static_cast<unsigned char>(name[i]) & 0xc0) == 0x80) --i;
    return i;
  };
  return "'" + name.substr(0, whole(most - end - 3)) + "..." + name.substr(whole(name.size() - end)) + "'";
}

/// Names in a list that ends when it is long enough: "'w', 'b' and 12 more".
class name_list {
 public:
  void add(std::string const& name) {
    if (more_ > 0 || text_.size() > 45) ++more_;
    else text_ += (text_.empty() ? "" : ", ") + quoted(name);
  }
  std::string text() const { return more_ ? text_ + " and " + std::to_string(more_) + " more" : text_; }

 private:
  std::string text_;
  std::int64_t more_ = 0;
};

/// The type of a schedule without its namespaces: "warmup<cosine>"; "a function" for a lambda.
inline std::string name_in_spelling(std::string_view spelling) {
  spelling.remove_prefix(spelling.find("Rule = ") + 7);
  spelling = spelling.substr(0, spelling.find_first_of("];"));
  std::string text;
  while (!spelling.empty()) {
    std::size_t used = 1;
    for (std::string_view scope : {"{anonymous}::", "(anonymous namespace)::"})
      if (spelling.starts_with(scope)) used = scope.size();
    if (spelling.starts_with("::")) used = 2, text.erase(text.find_last_of("<,( ") + 1);
    if (used == 1) text += spelling[0];
    spelling.remove_prefix(used);
  }
  return text.find_first_of("({") == text.npos ? text : "a function";
}
template <class T> std::string type_of_schedule() { return name_in_spelling(spelled_rule<T>()); }

/// A setting for readers: enumerators have their names; a number has all digits, or six.
template <class T> std::string shown_setting(T const& x, bool all_digits) {
  if constexpr (std::is_floating_point_v<T>)
    if (!all_digits) return number(x);
  if constexpr (std::is_enum_v<T> && !is_scoped<T> && requires { T{0}; }) {  // a fixed type: all numbers are valid
    std::string text;
    each_enumerator<T>([&](std::string_view name, T value) {
      if (value == x) text = name;
    });
    if (!text.empty()) return text;
  }
  return text_of_setting(x);
}
/// Not inlined, for the code of programs with many rules.
template <class T>
[[gnu::noinline]] void add_setting(std::vector<std::string>& all, setting_name const& name, T const& x,
                                   bool all_digits = true) {
  all.push_back(name.text() + " " + shown_setting(x, all_digits));
}
/// Each setting: "lr 0.1".
template <class T> std::vector<std::string> settings_of(T x, bool all_digits = true) {
  std::vector<std::string> all;
  walk_settings(x, setting_name{},
                [&](setting_name const& name, auto const& field) { add_setting(all, name, field, all_digits); });
  return all;
}

/// "lr 0.1, momentum 0.9".
inline std::string listed(std::vector<std::string> const& items) {
  std::string text;
  for (auto const& one : items) text += (text.empty() ? "" : ", ") + one;
  return text;
}
/// "sgd: lr 0.1, momentum 0.9". Leaves out the zeros at the end of a list, such as "values.7 0".
inline std::string listed_after(std::string const& name, std::vector<std::string> const& items) {
  std::vector<std::string> shown;
  std::size_t kept = 0;  // without the zeros so far
  for (auto const& one : items) {
    std::size_t const end = one.find(' ');
    bool const in_list = end != one.npos && end > 1 && one[end - 1] >= '0' && one[end - 1] <= '9' &&
                         one.find_last_not_of("0123456789", end - 1) == one.rfind('.', end - 1);
    if (!in_list) shown.resize(kept);
    shown.push_back(one);
    if (!in_list || one.substr(end) != " 0") kept = shown.size();
  }
  shown.resize(kept);
  return shown.empty() ? name : name + ": " + listed(shown);
}

/// The settings that differ from those of another rule of the same type.
inline std::vector<std::string> differing(std::vector<std::string> const& all, std::vector<std::string> const& usual) {
  std::vector<std::string> some;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != usual[i]) some.push_back(all[i]);
  return some;
}

}  // namespace descent::detail
