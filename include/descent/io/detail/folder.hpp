// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <dirent.h>
#include <memory>
#include <string>
#include <vector>

namespace descent::detail {

/// The names of all that is in a folder, in any order; none if it cannot be opened. Not by directory_iterator: that of
/// libstdc++ allocates in functions that are noexcept, and ends the program where memory has run out.
inline std::vector<std::string> names_in(std::string const& folder) {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> const list(::opendir(folder.c_str()), ::closedir);
  if (!list) return names;
  while (dirent const* const entry = ::readdir(list.get())) names.emplace_back(entry->d_name);
  return names;
}

}  // namespace descent::detail
