// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/mapped_file.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/file_records.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace descent {

namespace detail {

/// The number of an element type in IDX files, or 0.
template <class T> constexpr int idx_type() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return 0x8;
  else if constexpr (std::is_same_v<T, std::int8_t>) return 0x9;
  else if constexpr (std::is_same_v<T, std::int16_t>) return 0xb;
  else if constexpr (std::is_same_v<T, std::int32_t>) return 0xc;
  else if constexpr (std::is_same_v<T, float>) return 0xd;
  else if constexpr (std::is_same_v<T, double>) return 0xe;
  else return 0;
}

/// The extents of the array in an IDX file with elements of this type.
inline std::vector<std::int64_t> idx_extents(file_bytes const& file, int type) {
  auto const head = file.bytes(0, 4);
  auto const check = [&](bool holds, std::int64_t offset, char const* what, char const* expected) {
    require_at(holds, file.path(), offset, what, std::to_string(std::to_integer<int>(head[std::size_t(offset)])),
               expected);
  };
  for (std::int64_t i = 0; i < 2; ++i) check(head[std::size_t(i)] == std::byte{0}, i, "the byte of an IDX file", "0");
  check(head[2] == std::byte(type), 2, "the element type", std::to_string(type).c_str());
  check(head[3] != std::byte{0}, 3, "the number of dimensions", "at least 1");
  std::vector<std::int64_t> extents;
  for (std::int64_t i = 0; i < std::to_integer<std::int64_t>(head[3]); ++i)
    extents.push_back(integer_at<std::uint32_t>(file, 4 + 4 * i, std::endian::big));
  return extents;
}

}  // namespace detail

/// A source that reads an IDX file, the format of MNIST. The first dimension counts the records, the others are the
/// shape of the field. Its elements are the file's: std::uint8_t (8), std::int8_t (9), std::int16_t (11), std::int32_t
/// (12), float (13) or double (14). A compressed file is read first:
///
///     ds::idx_file<ds::field<"image", std::uint8_t>> const images(ds::read_gzip("train-images-idx3-ubyte.gz"));
template <class Field> class idx_file : public detail::file_records<Field> {
  using element = typename Field::element;
  static_assert(detail::idx_type<element>() != 0,
                "idx_file: elements must be std::uint8_t, std::int8_t, std::int16_t, std::int32_t, float or double");

 public:
  /// Takes a path or contents. Throws std::runtime_error if the file cannot be opened, and data_error if it is no IDX
  /// file of this type or has not exactly the bytes that its header announces.
  explicit idx_file(file_bytes const& file) : idx_file(file, detail::idx_extents(file, detail::idx_type<element>())) {}

 private:
  idx_file(file_bytes const& file, std::vector<std::int64_t> const& extents)
      : detail::file_records<Field>(
            file, 4 + 4 * std::int64_t(extents.size()), extents[0],
            detail::record_shape(file.path(), extents, [](std::size_t i) { return 4 + 4 * std::int64_t(i); }),
            std::endian::native != std::endian::big) {}
};

}  // namespace descent
