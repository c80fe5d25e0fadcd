// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/mapped_file.hpp>
#include <descent/io/detail/xxh3.hpp>
#include <descent/core/tensor_info.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What readers and writers of safetensors files share: limits, reserved keys and hashes.
namespace descent::detail {

inline constexpr std::int64_t most_header_bytes = 100'000'000;  // as in the reference implementation
inline constexpr std::size_t most_tensors = 1'000'000, most_axes = 8, most_name_bytes = 4096;
inline constexpr std::size_t data_alignment = 64;

inline constexpr std::string_view metadata_key = "__metadata__";
/// The keys of a file with hashes. It has all of them, and begins with `hashed_begin` behind the 8 bytes of the length,
/// then 16 digits: so the digits have one place, and no change of a single bit turns the file into one without hashes.
inline constexpr std::string_view version_key = "descent", header_hash_key = "xxh3_header", hashes_key = "xxh3";
inline constexpr std::string_view format_version = "1";
inline constexpr std::string_view hashed_begin = R"({"__metadata__":{"descent":"1","xxh3_header":")";
inline constexpr std::size_t hash_digits = 16;
inline constexpr char const* allowed_hash = "16 digits from 0 to f";

inline bool is_reserved(std::string_view key) {
  return key == version_key || key == header_hash_key || key == hashes_key;
}

/// What is wrong with the name of a tensor; empty if nothing is.
inline std::string problem_of_name(std::string_view name) {
  if (name.empty()) return "empty";
  if (name.size() > most_name_bytes) return std::to_string(name.size()) + " bytes long";
  if (name == metadata_key) return "'__metadata__', which is not a tensor";
  for (char const c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return "one with a control character";
  return "";
}
inline constexpr char const* allowed_name = "1 to 4096 bytes of UTF-8 without control characters";

/// "BOOL, U8, ...": the types that are read and written.
inline std::string known_type_names() {
  std::string all;
  for (std::size_t i = 0; i < known_types; ++i) all += (i ? ", " : "") + std::string(dtype_rows[i].name);
  return all;
}
/// The bytes of a tensor, or its elements if the type is unknown; empty if its extents are negative, or if their
/// product reaches 2^63 at any axis.
inline std::optional<std::int64_t> bytes_of_shape(dtype type, std::vector<std::int64_t> const& shape) {
  std::int64_t n = 1;
  auto const multiplied = [&](std::int64_t by) {
    if (by < 0 || (by > 0 && n > std::numeric_limits<std::int64_t>::max() / by)) return false;
    n *= by;
    return true;
  };
  for (auto const extent : shape)
    if (!multiplied(extent)) return {};
  if (type != dtype::unknown && !multiplied(std::int64_t(descent::bytes_of(type)))) return {};
  return n;
}
/// A shape for messages, as "[2, 3]".
inline std::string shape_text(std::vector<std::int64_t> const& shape) {
  std::string text;
  for (auto const extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

/// The beginning of a text for messages, in quotes, with '?' for each byte that is no printable UTF-8.
inline std::string in_quotes(std::string_view text) {
  std::string copy;
  while (!text.empty() && copy.size() < 60) {
    auto const at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    std::size_t const n = at(0) < 0x80   ? 1
                          : at(0) < 0xc2 ? 0
                          : at(0) < 0xe0 ? 2
                          : at(0) < 0xf0 ? 3
                          : at(0) < 0xf5 ? 4
                                         : 0;
    bool prints = n > 0 && n <= text.size() && at(0) >= 0x20 && at(0) != 0x7f;
    for (std::size_t i = 1; prints && i < n; ++i) prints = (at(i) & 0xc0) == 0x80;
    copy += prints ? text.substr(0, n) : "?";
    text.remove_prefix(prints ? n : 1);
  }
  return "'" + copy + (text.empty() ? "'" : "...'");
}

/// The hash of the bytes before the data, of which `digits` bytes, from hashed_begin on, count as '0'.
inline std::uint64_t hash_of_head(std::string_view head) {
  std::size_t const begin = 8 + hashed_begin.size();
  return xxh3()
      .add(head.substr(0, begin))
      .add(std::string(hash_digits, '0'))
      .add(head.substr(begin + hash_digits))
      .value();
}

}  // namespace descent::detail
