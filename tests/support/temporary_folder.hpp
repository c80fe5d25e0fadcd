// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace test {

/// A new folder, removed at the end.
struct temporary_folder {
  std::string path = (std::filesystem::temp_directory_path() / "descent_test_XXXXXX").string();
  temporary_folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  temporary_folder(temporary_folder const&) = delete;
  ~temporary_folder() { std::filesystem::remove_all(path); }

  std::string operator/(std::string const& name) const { return path + "/" + name; }
  /// Writes a file, without any of the care that the library takes. Returns its path.
  std::string write(std::string const& name, std::string const& contents) const {
    std::ofstream(*this / name, std::ios::binary) << contents;
    return *this / name;
  }
  /// The names in the folder, in order.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (auto const& entry : std::filesystem::directory_iterator(path)) all.push_back(entry.path().filename().string());
    std::ranges::sort(all);
    return all;
  }
};

/// The contents of a file.
inline std::string contents(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file, path << " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace test
