// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>

/// Files that tests read.
namespace test {

/// The folder of the tests: DESCENT_TESTS_DIR in the environment, otherwise the one from which this header was
/// compiled. If the compiler was given a relative path, the test must run in the folder in which the compiler ran.
inline std::string tests_dir() {
  char const* const said = std::getenv("DESCENT_TESTS_DIR");
  std::string const here = __FILE__;
  std::string const folder = said ? said : here.substr(0, here.rfind('/')) + "/..";
  REQUIRE_MESSAGE(std::ifstream(folder + "/reference/values.txt"),
                  folder << " is not the folder of the tests: set DESCENT_TESTS_DIR");
  return folder;
}

}  // namespace test
