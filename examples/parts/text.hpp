// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace example {

/// The parts between separators; one empty part if the text is empty.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    auto const end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Whether the whole text is a number, which is stored in x.
template <class Number> bool read(std::string_view text, Number& x) {
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  return error == std::errc{} && end == text.data() + text.size();
}

inline std::string quoted(std::string_view text) { return '"' + std::string{text} + '"'; }

/// With six digits, as printf's %g.
inline std::string short_number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", x);
  return text;
}

inline std::string joined(std::vector<std::string> const& words, std::string const& separator) {
  std::string text;
  for (auto const& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

/// Words with commas between them, in lines of at most 118 columns.
inline std::string in_lines(std::vector<std::string> const& words) {
  std::string text;
  std::size_t column = 0;
  for (auto const& word : words) {
    if (!text.empty()) text += ',';
    if (column > 0 && column + word.size() + 3 > 118) text += '\n', column = 0;
    text += (column > 0 ? " " : "  ") + word;
    column += word.size() + 2;
  }
  return text;
}

/// As one word of a command line.
inline std::string for_shell(std::string const& word) {
  auto const plain = [](unsigned char c) {
    return std::isalnum(c) || std::string_view{"_@%+=:,./-"}.find(char(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string text = "'";
  for (char const c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace example
