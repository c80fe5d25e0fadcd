// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/aggregate.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace descent::detail {

/// "adamw::lr" for &descent::adamw::lr, as the compiler spells it.
template <auto Field> std::string field_name() {
  std::string_view const text = spelled_value<Field>();
  std::size_t const end = text.find_last_of(']');
  int depth = 0, parts = 0;
  std::size_t begin = end;
  for (; begin > 0; --begin) {
    char const c = text[begin - 1];
    depth += (c == '>') - (c == '<');
    if (depth == 0 && (c == '&' || c == ' ' || (c == ':' && text[begin] != ':' && ++parts == 2))) break;
  }
  return std::string(text.substr(begin, end - begin));
}

}  // namespace descent::detail
