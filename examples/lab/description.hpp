// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/fields.hpp>
#include <descent/core/rule.hpp>

#include <cstddef>
#include <string>
#include <type_traits>

/// The fields of a rule by their numbers, and what the page needs to know of a rule, as JSON.
namespace lab {

inline constexpr std::size_t most_fields = 24;
inline double field_values[most_fields];

/// A field of a rule, whose type is only known by its kind.
enum field_kind { real_field, flag_field, whole_field };
using field_visitor = void (*)(std::string const& name, field_kind kind, void* field, std::size_t i);
template <class Rule> void visit_fields(Rule& rule, field_visitor f) {
  std::size_t i = 0;
  ds::each_field(rule, [&](std::string const& name, auto& field) {
    using type = std::remove_cvref_t<decltype(field)>;
    static_assert(std::is_same_v<type, double> || std::is_same_v<type, bool> || std::is_same_v<type, int>);
    f(name,
      std::is_same_v<type, double> ? real_field
      : std::is_same_v<type, bool> ? flag_field
                                   : whole_field,
      &field, i++);
  });
}
inline void set_field(std::string const&, field_kind kind, void* field, std::size_t i) {
  double const x = field_values[i];
  if (kind == real_field) *static_cast<double*>(field) = x;
  else if (kind == flag_field) *static_cast<bool*>(field) = x != 0;
  else *static_cast<int*>(field) = int(x);
}
inline void read_field(std::string const&, field_kind kind, void* field, std::size_t i) {
  field_values[i] = kind == real_field   ? *static_cast<double*>(field)
                    : kind == flag_field ? double(*static_cast<bool*>(field))
                                         : double(*static_cast<int*>(field));
}

/// The description, as JSON. close() takes away a comma at the end of a list.
struct text {
  char out[16384];
  std::size_t size = 0;
  void add(char const* more) {
    while (*more && size + 1 < sizeof out) out[size++] = *more++;
    out[size] = 0;
  }
  void add_name(char const* name) { add("\""), add(name), add("\","); }
  void close() {
    if (size > 0 && out[size - 1] == ',') --size;
    add("]");
  }
};
inline text description;
inline void describe_field(std::string const& name, field_kind kind, void*, std::size_t) {
  char const* const kinds[] = {"real", "flag", "whole"};
  description.add("["), description.add_name(name.c_str()), description.add_name(kinds[kind]);
  description.close(), description.add(",");
}
inline void describe(char const* name, bool memory, bool loss, bool averaged, char const* sums) {
  auto const add = [](char const* key, bool x) { description.add(key), description.add(x ? "true" : "false"); };
  description.add("\"name\":"), description.add_name(name);
  add("\"memory\":", memory), add(",\"loss\":", loss), add(",\"averaged\":", averaged);
  description.add(",\"sums\":\""), description.add(sums), description.add("\",\"slots\":[");
}
template <class Rule> constexpr char const* sums_of() {
  if constexpr (ds::has_sums<Rule>) return Rule::sums_over == ds::scope::tensor ? "tensor" : "model";
  else return "";
}

}  // namespace lab
