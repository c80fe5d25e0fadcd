// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

/// Files that programs write. Each function throws std::runtime_error on failure.
namespace example {

/// For a file that is written after a long run: tries to open it and leaves everything unchanged.
inline void require_writable(std::filesystem::path const& path) {
  namespace fs = std::filesystem;
  fs::path created;  // the uppermost new folder
  for (fs::path p = path.parent_path(); !p.empty() && !fs::exists(p); p = p.parent_path()) created = p;
  if (!created.empty()) fs::create_directories(path.parent_path());
  bool const there = fs::exists(path);
  if (!std::ofstream{path, std::ios::app}) throw std::runtime_error(path.string() + ": cannot be written");
  if (!there) fs::remove(path);
  std::error_code not_empty;
  if (!created.empty())
    for (fs::path p = path.parent_path(); fs::remove(p, not_empty) && p != created;) p = p.parent_path();
}

/// Creates the folder if it does not exist.
inline void write_file(std::filesystem::path const& path, std::string const& contents) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream file{path, std::ios::binary};
  file << contents;
  if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

}  // namespace example
