// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace descent::detail {

inline constexpr std::uint64_t hash_of_nothing = 0xcbf29ce484222325;

/// FNV-1a of bytes, also of some that follow those with the hash h. A change of any byte changes it.
inline std::uint64_t hash_of(std::string_view bytes, std::uint64_t h = hash_of_nothing) {
  for (char const c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

/// A hash as 16 hexadecimal digits.
inline std::string hash_text(std::uint64_t hash) {
  std::string text;
  for (int i = 60; i >= 0; i -= 4) text += "0123456789abcdef"[hash >> i & 15];
  return text;
}

}  // namespace descent::detail
