// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/mapped_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <zlib.h>

namespace descent {

namespace detail {

/// Decompresses one member of a gzip file after another.
class gunzip {
 public:
  explicit gunzip(file_bytes const& file) : file_(file) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) fail("the state of zlib", "not initialized", "initialized");
  }
  gunzip(gunzip const&) = delete;
  gunzip& operator=(gunzip const&) = delete;
  ~gunzip() { inflateEnd(&stream_); }

  std::vector<std::byte> all() {
    std::vector<std::byte> contents(first_size());
    std::size_t count = 0;
    do {
      for (int code = Z_OK; code != Z_STREAM_END;) {
        // zlib needs room to finish a member even if no byte is left to write.
        if (count == contents.size()) contents.resize(count + std::max(count / 2, std::size_t{1} << 12));
        auto const in = file_.bytes().subspan(at_);
        stream_.next_in = const_cast<Bytef*>(reinterpret_cast<Bytef const*>(in.data()));
        stream_.avail_in = part(in.size());
        stream_.next_out = reinterpret_cast<Bytef*>(contents.data() + count);
        stream_.avail_out = part(contents.size() - count);
        uInt const room = stream_.avail_out, given = stream_.avail_in;
        code = inflate(&stream_, Z_NO_FLUSH);
        at_ += given - stream_.avail_in;
        count += room - stream_.avail_out;
        if (code == Z_STREAM_END) break;
        if (code != Z_OK && code != Z_BUF_ERROR)
          fail("the gzip data", std::string("corrupt (") + (stream_.msg ? stream_.msg : zError(code)) + ")", "valid");
        if (at_ == file_.bytes().size() && stream_.avail_out > 0) fail("the gzip data", "truncated", "complete");
      }
    } while (has_another());
    contents.resize(count);
    return contents;
  }

 private:
  [[noreturn]] void fail(char const* what, std::string const& got, char const* expected) const {
    throw data_error(file_.path(), "offset " + std::to_string(at_), what, got, expected);
  }
  static uInt part(std::size_t n) { return uInt(std::min<std::size_t>(n, std::numeric_limits<uInt>::max())); }
  /// The size that the last four bytes name, with room for one more byte, if the file can expand to that.
  std::size_t first_size() const {
    std::size_t const n = file_.bytes().size();
    std::size_t size = 0;
    for (std::size_t i = 0; n >= 18 && i < 4; ++i)
      size |= std::to_integer<std::size_t>(file_.bytes()[n - 4 + i]) << 8 * i;
    return size <= n * 1032 ? size + 1 : n;
  }
  /// Whether another member follows. Zeros may fill the end of the file, as for gzip(1), which only warns of other
  /// bytes that are no member; here they are an error, since they may be a damaged member.
  bool has_another() {
    auto const rest = file_.bytes().subspan(at_);
    if (std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; })) return false;
    inflateReset(&stream_);
    return true;
  }

  file_bytes const& file_;
  z_stream stream_{};
  std::size_t at_ = 0;
};

}  // namespace detail

/// The decompressed contents of a gzip file, all in memory, for the constructors of readers. Programs that call this
/// must be linked with zlib (-lz). Throws std::runtime_error if the file cannot be opened, and data_error if it is no
/// gzip file, or is truncated or corrupt.
inline file_bytes read_gzip(std::string const& path) {
  file_bytes const file(path);
  return {path, detail::gunzip(file).all()};
}

}  // namespace descent
