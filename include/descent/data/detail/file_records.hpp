// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/mapped_file.hpp>
#include <descent/data/source.hpp>
#include <descent/core/detail/block.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent::detail {

/// Throws std::out_of_range unless i is in [0, size).
inline void require_index(std::string const& path, char const* what, std::int64_t i, std::int64_t size) {
  if (i < 0 || i >= size)
    throw std::out_of_range(path + ": " + what + " must be in [0, " + std::to_string(size) + "), is " +
                            std::to_string(i));
}
/// Copies elements from a file, which may lie at any address. `swapped`: the file has the other order of bytes.
template <class T> void copy_file_elements(std::byte const* from, T* to, std::int64_t count, bool swapped) {
  auto const n = std::size_t(count);
  if constexpr (std::is_same_v<T, bool>) {
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i] != std::byte{0};  // another value is no bool
  } else {
    if constexpr (sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8)
      if (swapped) {
        using bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                        std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
        for (std::size_t i = 0; i < n; ++i) {
          bits x;
          std::memcpy(&x, from + i * sizeof x, sizeof x);
          if constexpr (sizeof x == 2) x = __builtin_bswap16(x);
          else if constexpr (sizeof x == 4) x = __builtin_bswap32(x);
          else x = __builtin_bswap64(x);
          std::memcpy(static_cast<void*>(to + i), &x, sizeof x);
        }
        return;
      }
    if (n > 0) std::memcpy(static_cast<void*>(to), from, n * sizeof(T));
  }
}
/// The integer at an offset. Throws data_error if the file ends before it.
template <class T> T integer_at(file_bytes const& file, std::int64_t offset, std::endian order) {
  T x;
  copy_file_elements(file.bytes(offset, sizeof x).data(), &x, 1, order != std::endian::native);
  return x;
}

/// The extents of an array in a file without the first one, which is the number of records. Throws data_error, for the
/// offset of the i-th extent, if it is below 1 or if the product of all so far is above 2^48, the limit of a field.
template <class Offset>
std::vector<std::int64_t> record_shape(std::string const& path, std::vector<std::int64_t> const& extents,
                                       Offset const& offset_of) {
  std::int64_t n = 1;
  for (std::size_t i = 1; i < extents.size(); ++i) {
    require_at(extents[i] >= 1 && extents[i] <= (std::int64_t{1} << 48) / n, path, offset_of(i), "an extent",
               std::to_string(extents[i]), "at least 1, with a product of at most 2^48 per record");
    n *= extents[i];
  }
  return {extents.begin() + 1, extents.end()};
}

/// A source of records of the same size that follow each other up to the end of a file. Copies share the file.
template <class Field> class file_records {
  using element = typename Field::element;

 public:
  using fields_type = descent::fields<Field>;  ///< one field

  fields_type const& fields() const { return fields_; }  ///< the name, and the shape of a record
  std::int64_t size() const { return records_; }  ///< the number of records
  /// Writes record i. Throws std::out_of_range if there is none.
  void read(std::int64_t i, record<fields_type> const& out, record_random&) const {
    require_index(file_.path(), "the record", i, records_);
    copy(i, 1, out);
  }
  /// Writes `count` records, which follow each other in memory. Throws std::out_of_range if there are fewer.
  void read_run(std::int64_t first, std::int64_t count, record<fields_type> const& out) const {
    require_index(file_.path(), "the first record", first, records_ + 1);
    require_index(file_.path(), "the number of records", count, records_ - first + 1);
    copy(first, count, out);
  }
  std::string const& path() const { return file_.path(); }  ///< of the file

 protected:
  /// Records from an offset on. Throws data_error unless the file has as many bytes from there on as they need.
  file_records(file_bytes file, std::int64_t offset, std::int64_t records, std::vector<std::int64_t> shape,
               bool swapped)
      : file_(std::move(file)), fields_(Field(std::move(shape))), offset_(offset), records_(records),
        swapped_(swapped) {
    std::int64_t const wanted = limited_product(records, fields_.bytes()), rest = file_.size() - offset;
    require_at(rest == wanted, file_.path(), offset, "the number of bytes from here", std::to_string(rest),
               std::to_string(wanted));
  }

 private:
  void copy(std::int64_t first, std::int64_t count, record<fields_type> const& out) const {
    std::int64_t const n = fields_.template at<0>().size();
    copy_file_elements(file_.bytes().data() + offset_ + first * n * std::int64_t(sizeof(element)),
                       out.template at<0>().data(), count * n, swapped_);
  }

  file_bytes file_;
  fields_type fields_;
  std::int64_t offset_;
  std::int64_t records_;
  bool swapped_;
};

}  // namespace descent::detail
