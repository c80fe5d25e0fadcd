// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace example {

/// Fowler, Noll and Vo's hash FNV-1a of bytes, or of those behind others with the hash h.
template <class Bytes> std::uint64_t hash_of(Bytes const& bytes, std::uint64_t h = 0xcbf29ce484222325) {
  for (auto const byte : bytes) h = (h ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return h;
}

/// In 16 hexadecimal digits.
inline std::string hex(std::uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace example
