// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>

namespace test {

/// The message of the Exception that f throws; empty if it throws none. std::invalid_argument is a std::logic_error.
template <class Exception = std::logic_error, class F> std::string message(F const& f) {
  try {
    f();
  } catch (Exception const& e) {
    return e.what();
  }
  return "";
}

}  // namespace test
