// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/descriptor.hpp>

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utility>
#include <vector>

/// The bytes of a file, for the readers of data: mapped into memory with POSIX's mmap, or read into it.
namespace descent {

/// What is wrong with the contents of a file, as "FILE: offset 2: the type is 12, must be 8".
class data_error : public std::runtime_error {
 public:
  /// `place` is an offset in bytes or a line, as "offset 2" or "line 7".
  data_error(std::string const& file, std::string const& place, std::string const& what, std::string const& got,
             std::string const& expected)
      : std::runtime_error(file + ": " + place + ": " + what + " is " + got + ", must be " + expected) {}
  /// With a whole sentence, for a file that is something else.
  explicit data_error(std::string const& sentence) : std::runtime_error(sentence) {}
};

namespace detail {

/// Throws data_error "FILE: offset N: what is got, must be expected" unless `holds`.
inline void require_at(bool holds, std::string const& path, std::int64_t offset, char const* what,
                       std::string const& got, std::string const& expected) {
  if (!holds) throw data_error(path, "offset " + std::to_string(offset), what, got, expected);
}
/// Part of the bytes of a file.
inline std::span<std::byte const> file_part(std::string const& path, std::span<std::byte const> all,
                                            std::int64_t offset, std::int64_t count) {
  std::int64_t const left = offset < 0 ? -1 : std::int64_t(all.size()) - offset;
  if (left < 0 || count < 0 || count > left)
    require_at(false, path, offset, "the number of bytes from here", std::to_string(left),
               "at least " + std::to_string(std::max(count, std::int64_t{0})));
  return all.subspan(std::size_t(offset), std::size_t(count));
}

}  // namespace detail

/// A regular file, mapped into memory for reading. The operating system reads a page when it is first used, and may
/// drop it again. No one may shorten the file meanwhile: reading beyond its end stops the process with SIGBUS.
class mapped_file {
 public:
  /// Maps the whole file. Throws std::runtime_error if it cannot be opened or is no regular file.
  explicit mapped_file(std::string path) : path_(std::move(path)) {
    // Without O_NONBLOCK, opening a pipe would wait for somebody who writes to it.
    detail::descriptor const file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat about;
    if (!file || ::fstat(file.get(), &about) != 0) fail("opened", errno);
    if (S_ISDIR(about.st_mode)) fail("opened", EISDIR);
    if (!S_ISREG(about.st_mode)) throw std::runtime_error(path_ + ": cannot be mapped: it is not a regular file");
    if (about.st_size == 0) return;  // mmap refuses this length
    void* const data = ::mmap(nullptr, std::size_t(about.st_size), PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data == MAP_FAILED) fail("mapped", errno);
    bytes_ = {static_cast<std::byte const*>(data), std::size_t(about.st_size)};
  }
  mapped_file(mapped_file&& other) noexcept
      : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, std::span<std::byte const>())) {}
  mapped_file& operator=(mapped_file&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapped_file() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  /// The contents. Valid until the mapped_file is destroyed; moving it changes nothing.
  std::span<std::byte const> bytes() const { return bytes_; }
  /// `count` bytes from `offset` on. Throws data_error if there are fewer.
  std::span<std::byte const> bytes(std::int64_t offset, std::int64_t count) const {
    return detail::file_part(path_, bytes_, offset, count);
  }
  std::string const& path() const { return path_; }  ///< the path passed to the constructor

 private:
  [[noreturn]] void fail(char const* what, int error) const {
    throw std::runtime_error(path_ + ": cannot be " + what + ": " + detail::system_message(error));
  }

  std::string path_;
  std::span<std::byte const> bytes_;
};

/// The contents of a file, mapped or in memory. Copies share them, and the last one releases them.
class file_bytes {
 public:
  /// Maps the file with this path: a string or a std::filesystem::path. Throws like mapped_file.
  template <std::convertible_to<std::string> Path> file_bytes(Path const& path)
      : file_bytes(mapped_file(static_cast<std::string>(path))) {}
  /// Owns the mapped file.
  explicit file_bytes(mapped_file file) : file_bytes(std::make_shared<mapped_file const>(std::move(file))) {}
  /// Shares the mapped file.
  explicit file_bytes(std::shared_ptr<mapped_file const> file)
      : path_(&file->path()), bytes_(file->bytes()), owner_(std::move(file)) {}
  /// Owns contents that are in memory. `path` is for messages.
  file_bytes(std::string path, std::vector<std::byte> contents) {
    auto owner = std::make_shared<in_memory const>(in_memory{std::move(path), std::move(contents)});
    path_ = &owner->path;
    bytes_ = owner->contents;
    owner_ = std::move(owner);
  }

  std::span<std::byte const> bytes() const { return bytes_; }  ///< the contents, valid as long as a copy exists
  /// `count` bytes from `offset` on. Throws data_error if there are fewer.
  std::span<std::byte const> bytes(std::int64_t offset, std::int64_t count) const {
    return detail::file_part(*path_, bytes_, offset, count);
  }
  std::int64_t size() const { return std::int64_t(bytes_.size()); }  ///< in bytes
  std::string const& path() const { return *path_; }  ///< the path passed to the constructor

 private:
  struct in_memory {
    std::string path;
    std::vector<std::byte> contents;
  };

  std::string const* path_;
  std::span<std::byte const> bytes_;
  std::shared_ptr<void const> owner_;
};

}  // namespace descent
