// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "text.hpp"

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

/// Command-line options. Mistakes are reported as std::invalid_argument.
namespace example {

[[noreturn]] inline void fail(std::string const& what) { throw std::invalid_argument(what); }

template <class Number>
Number integer(std::string const& name, std::string const& text, Number low, Number high) {
  Number x{};
  if (!read(text, x) || x < low || x > high)
    fail(name + " must be an integer from " + std::to_string(low) + " to " + std::to_string(high) + ", is " +
         quoted(text));
  return x;
}

inline double number(std::string const& name, std::string const& text) {
  double x = 0;
  if (text == "true" || text == "false") return text == "true";
  if (!read(text, x)) fail(name + " must be a number, is " + quoted(text));
  return x;
}

inline double positive(std::string const& name, std::string const& text) {
  double const x = number(name, text);
  if (!(x > 0)) fail(name + " must be above 0, is " + quoted(text));
  return x;
}

/// Calls take(name, value) for each option that is_option(name) knows, as `--name value` or `--name=value`. Stops at
/// --help and returns false.
inline bool each_option(std::vector<std::string> const& arguments,
                        std::function<bool(std::string const&)> const& is_option,
                        std::function<void(std::string const&, std::string const&)> const& take) {
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    if (*argument == "--help" || *argument == "-h") return false;
    auto const equals = argument->find('=');
    auto const name = argument->substr(0, equals);
    if (!is_option(name)) fail("unknown option " + quoted(name));

    bool const apart = equals == std::string::npos;
    if (apart && argument + 1 == arguments.end()) fail(name + " needs a value");
    take(name, apart ? *++argument : argument->substr(equals + 1));
  }
  return true;
}

}  // namespace example
