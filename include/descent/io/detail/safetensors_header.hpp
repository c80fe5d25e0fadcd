// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/detail/file_kind.hpp>
#include <descent/io/detail/safetensors_events.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace descent::detail {

static_assert(std::endian::native == std::endian::little, "descent: safetensors files need a little-endian host");

/// What the header of a file says. `hashes` belong to the tensors; they and `hash` are empty in a file without hashes.
struct safetensors_header {
  std::vector<tensor_info> tensors;  ///< in the order of their data
  std::vector<std::size_t> by_name;  ///< indices of tensors
  text_map metadata;  ///< without the reserved keys
  std::vector<std::uint64_t> hashes;
  std::string hash;  ///< of the header
  std::int64_t data = 0;  ///< where the data section begins
};

/// Reads and checks the header of a file. Throws data_error.
class safetensors_reader {
 public:
  safetensors_reader(std::string const& path, std::span<std::byte const> file) : path_(path), file_(file) {}

  safetensors_header header() {
    std::string_view const text = header_text();
    header_events events(path_);
    events.parse(text);
    safetensors_header all;
    all.tensors = std::move(events.tensors);
    all.metadata = std::move(events.metadata);
    all.data = 8 + std::int64_t(text.size());
    order_by_name(all);
    check_layout(all);
    take_hashes(all, text);
    return all;
  }

 private:
  std::string_view header_text() const {
    auto const head = file_part(path_, file_, 0, 8);
    std::uint64_t n = 0;
    for (int i = 8; i-- > 0;) n = n << 8 | std::to_integer<std::uint64_t>(head[std::size_t(i)]);
    bool const fits = n >= 2 && n <= std::uint64_t(most_header_bytes) && n <= file_.size() - 8;
    if (!fits || file_[8] != std::byte{'{'}) refuse_other_kind();
    require_at(n >= 2 && n <= std::uint64_t(most_header_bytes), path_, 0, "the length of the header", std::to_string(n),
               "from 2 to 100000000");
    auto const bytes = file_part(path_, file_, 8, std::int64_t(n));
    std::string_view const text{reinterpret_cast<char const*>(bytes.data()), bytes.size()};
    require_at(text[0] == '{', path_, 8, "the beginning of the header", in_quotes(text.substr(0, 20)), "'{'");
    auto const nul = text.find('\0');  // for the parser the text would end here
    require_at(nul == text.npos, path_, 8 + std::int64_t(nul), "a character of the header", "NUL", "another one");
    return text;
  }
  /// Says what the file is, if its beginning tells.
  void refuse_other_kind() const {
    std::string_view const all{reinterpret_cast<char const*>(file_.data()), file_.size()};
    std::string const kind = kind_of_file(all);
    if (kind.empty()) return;
    auto const beginning = all.substr(0, all.find_first_of("\r\n"));
    throw data_error(path_ + " is not a safetensors file: it begins as " + kind +
                     (kind == "a text" ? ": " + in_quotes(beginning) : ""));
  }
  /// Sorts by offset, finds duplicates, and leaves `by_name` for those who look for a tensor.
  void order_by_name(safetensors_header& all) const {
    std::ranges::stable_sort(all.tensors, {}, [](auto const& t) { return std::pair(t.offset, t.offset + t.bytes); });
    all.by_name.resize(all.tensors.size());
    std::iota(all.by_name.begin(), all.by_name.end(), std::size_t{0});
    auto const name = [&](std::size_t i) -> std::string const& { return all.tensors[i].name; };
    std::ranges::sort(all.by_name, {}, name);
    auto const twice = std::ranges::adjacent_find(all.by_name, {}, name);
    if (twice != all.by_name.end()) fail("tensor " + in_quotes(name(*twice)), "the number of entries", "2", "1");
  }
  /// Each tensor begins where the one before ends, and the last one ends with the file.
  void check_layout(safetensors_header const& all) const {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < all.tensors.size(); ++i) {
      tensor_info const& t = all.tensors[i];
      if (t.offset != end)
        fail("tensor " + in_quotes(t.name), "the beginning of the data", std::to_string(t.offset),
             std::to_string(end) +
                 (i == 0 ? ", as of the first tensor" : ", the end of tensor " + in_quotes(all.tensors[i - 1].name)));
      end = t.offset + t.bytes;
    }
    auto const there = std::int64_t(file_.size()) - all.data;
    require_at(there == end, path_, all.data, "the number of bytes from here", std::to_string(there),
               std::to_string(end) + ", the bytes of all tensors");
  }
  void take_hashes(safetensors_header& all, std::string_view text) const {
    if (std::ranges::none_of(all.metadata, is_reserved, &text_map::value_type::first)) return;
    for (std::string_view const key : {version_key, header_hash_key, hashes_key})
      if (!all.metadata.contains(std::string(key)))
        fail(metadata_key, in_quotes(key), "missing", "there, as in all files with 'descent', 'xxh3_header' or 'xxh3'");
    auto const taken = [&](std::string_view key) { return std::move(all.metadata.extract(std::string(key)).mapped()); };
    if (std::string const version = taken(version_key); version != format_version)
      fail(metadata_key, "'descent', the version of the format,", in_quotes(version), in_quotes(format_version));
    require_at(text.starts_with(hashed_begin), path_, 8, "the beginning of the header", in_quotes(text),
               in_quotes(hashed_begin));
    all.hash = taken(header_hash_key);
    if (!parse_hash(all.hash)) fail(metadata_key, "'xxh3_header'", in_quotes(all.hash), allowed_hash);
    std::string const is =
        hash_text(hash_of_head({reinterpret_cast<char const*>(file_.data()), std::size_t(all.data)}));
    require_at(is == all.hash, path_, 0, "the XXH3 of the header", is, all.hash + ", as the header says");
    hash_events events(path_);
    std::string const list = taken(hashes_key);
    events.parse(list);
    take_hashes(all, events.hashes);
  }
  void take_hashes(safetensors_header& all, text_map& hashes) const {
    for (tensor_info const& t : all.tensors) {
      auto const text = hashes.extract(t.name);
      if (!text) fail("tensor " + in_quotes(t.name), "the hash", "missing", "in 'xxh3' of the metadata");
      auto const hash = parse_hash(text.mapped());
      if (!hash) fail("tensor " + in_quotes(t.name), "the hash", in_quotes(text.mapped()), allowed_hash);
      all.hashes.push_back(*hash);
    }
    if (!hashes.empty()) fail(metadata_key, "a name in 'xxh3'", in_quotes(hashes.begin()->first), "that of a tensor");
  }
  [[noreturn]] void fail(std::string_view place, std::string const& what, std::string const& got,
                         std::string const& expected) const {
    throw data_error(path_, std::string(place), what, got, expected);
  }

  std::string const& path_;
  std::span<std::byte const> file_;
};

/// Text as JSON. Throws std::invalid_argument with the name of its owner if it is no UTF-8.
inline std::string json_text(std::string const& text, char const* whose) {
  try {
    return nlohmann::json(text).dump();
  } catch (nlohmann::json::type_error const&) {
    throw std::invalid_argument("safetensors_writer: " + std::string(whose) + " must be UTF-8, is " + in_quotes(text));
  }
}

/// The bytes before the data: length, header, and spaces so that the data begins at a multiple of 64. `tensors` are in
/// the order of their data. Texts of the same length come with any hashes.
inline std::string safetensors_head(std::vector<tensor_info> const& tensors, text_map const& metadata,
                                    std::vector<std::uint64_t> const& hashes,
                                    std::int64_t most_bytes = most_header_bytes) {
  std::string list = "{";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (i > 0) list += ',';
    list.append(json_text(tensors[i].name, "the name of a tensor")).append(":\"").append(hash_text(hashes[i])) += '"';
  }
  list += '}';
  std::string text(8, '\0');
  text.append(hashed_begin).append(hash_digits, '0');
  text.append("\",\"xxh3\":").append(json_text(list, "the list of hashes"));
  for (auto const& [key, value] : metadata) {
    text.append(",").append(json_text(key, "a key of the metadata"));
    text.append(":").append(json_text(value, "a text of the metadata"));
  }
  text += '}';
  for (tensor_info const& t : tensors) {
    std::string shape = shape_text(t.shape);
    std::erase(shape, ' ');
    text.append(",").append(json_text(t.name, "the name of a tensor"));
    text.append(R"(:{"dtype":")").append(descent::name_of(t.type)).append(R"(","shape":)").append(shape);
    text.append(R"(,"data_offsets":[)").append(std::to_string(t.offset)).append(",");
    text.append(std::to_string(t.offset + t.bytes)).append("]}");
  }
  text += '}';
  text.append((data_alignment - text.size() % data_alignment) % data_alignment, ' ');
  std::uint64_t const n = text.size() - 8;
  if (n > std::uint64_t(most_bytes))
    throw std::invalid_argument("safetensors_writer: the header must have at most " + std::to_string(most_bytes) +
                                " bytes, has " + std::to_string(n) +
                                ": use fewer tensors, shorter names or less metadata");
  for (std::size_t i = 0; i < 8; ++i) text[i] = char(n >> (8 * i) & 0xff);
  text.replace(8 + hashed_begin.size(), hash_digits, hash_text(hash_of_head(text)));
  return text;
}

}  // namespace descent::detail
