// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

/// Files that programs write. Each function throws std::runtime_error where that fails.
namespace example {

/// For a file that is written after a long run: creates its folder and opens it, and leaves what is in it.
inline void require_writable(std::filesystem::path const& path) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  bool const there = std::filesystem::exists(path);
  if (!std::ofstream{path, std::ios::app}) throw std::runtime_error(path.string() + ": cannot be written");
  if (!there) std::filesystem::remove(path);
}

inline void write_file(std::filesystem::path const& path, std::string const& contents) {
  std::ofstream file{path, std::ios::binary};
  file << contents;
  if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

}  // namespace example
