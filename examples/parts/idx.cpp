// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "idx.hpp"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace example {
namespace {

using bytes = std::vector<std::uint8_t>;

/// The contents of a file, decompressed if it is compressed: zlib detects this.
bytes read_file(std::string const& path) {
  std::unique_ptr<gzFile_s, int (*)(gzFile)> const file{gzopen(path.c_str(), "rb"), gzclose};
  if (!file) throw std::runtime_error(path + ": " + std::strerror(errno));

  bytes contents;
  constexpr std::size_t block = 1 << 20;
  for (;;) {
    std::size_t const old_size = contents.size();
    contents.resize(old_size + block);
    int const got = gzread(file.get(), contents.data() + old_size, block);
    contents.resize(old_size + std::size_t(got > 0 ? got : 0));
    int error = Z_OK;
    char const* const message = gzerror(file.get(), &error);
    // The caller, which knows the sizes, detects a truncated compressed file.
    if (error == Z_ERRNO) throw std::runtime_error(path + ": " + std::strerror(errno));
    if (error == Z_DATA_ERROR) throw std::runtime_error(message);  // begins with the path
    if (got <= 0) return contents;
  }
}

std::uint32_t big_endian(std::uint8_t const* b) {
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

}  // namespace

idx_array read_idx(std::string const& path, int dimensions) {
  bool const plain = std::filesystem::exists(path);
  auto const name = plain || !std::filesystem::exists(path + ".gz") ? path : path + ".gz";
  auto const contents = read_file(name);
  auto const fail = [&](std::string const& what) { throw std::runtime_error(name + ": " + what); };

  // 0, 0, the type of the elements (8: unsigned bytes), the number of dimensions
  std::uint8_t const expected[4] = {0, 0, 8, std::uint8_t(dimensions)};
  if (contents.size() < 4 || std::memcmp(contents.data(), expected, 4) != 0)
    fail("is not an IDX file of unsigned bytes with " + std::to_string(dimensions) +
         (dimensions == 1 ? " dimension" : " dimensions"));

  std::size_t const header = 4 + 4 * std::size_t(dimensions);
  if (contents.size() < header) fail("is truncated: it ends within its header");

  idx_array result;
  std::uint64_t size = 1;
  for (std::size_t at = 4; at < header; at += 4) {
    result.sizes.push_back(big_endian(&contents[at]));
    size *= result.sizes.back();
    if (size > 0x7fff'ffff) fail("announces more than 2 GiB of data");
  }
  std::uint64_t const found = contents.size() - header;
  auto const sizes = "its header announces " + std::to_string(size) + " bytes of data, it has " + std::to_string(found);
  if (found < size) fail("is truncated: " + sizes);
  if (found > size) fail("is too long: " + sizes);
  result.bytes.assign(contents.begin() + std::ptrdiff_t(header), contents.end());
  return result;
}

}  // namespace example
