// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/mapped_file.hpp>
#include <descent/data/source.hpp>
#include <descent/data/detail/file_records.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace descent {

/// A source that reads records of the same size which follow each other in a file after a header: elements in the
/// byte order of the host. A bool is a byte. For example the files of CIFAR-10's binary version, whose records are a
/// byte with the label and 3 x 32 x 32 bytes of pixels, plane after plane:
///
///     ds::raw_records<ds::field<"record", std::uint8_t>> const train("data_batch_1.bin", {1 + 3072});
template <class Field> class raw_records : public detail::file_records<Field> {
  using element = typename Field::element;

 public:
  /// Takes a path or contents, the shape of a record, and how many bytes to skip at the beginning. Throws
  /// std::runtime_error if the file cannot be opened, data_error if it ends within the header or a record, and
  /// std::invalid_argument if an extent is not at least 1 or header_bytes is negative.
  raw_records(file_bytes const& file, std::vector<std::int64_t> shape, std::int64_t header_bytes = 0)
      : detail::file_records<Field>(file, header_bytes, count(file, Field(shape), header_bytes), shape, false) {}

 private:
  static std::int64_t count(file_bytes const& file, Field const& of, std::int64_t header_bytes) {
    detail::require(header_bytes >= 0, "raw_records", "header_bytes", "at least 0", header_bytes);
    file.bytes(0, header_bytes);
    std::int64_t const bytes = detail::limited_product(of.size(), sizeof(element)), rest = file.size() - header_bytes;
    detail::require_at(rest % bytes == 0, file.path(), header_bytes, "the number of bytes from here",
                       std::to_string(rest), "a multiple of " + std::to_string(bytes));
    return rest / bytes;
  }
};

}  // namespace descent
