// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/detail/temporary_file.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

/// Files that are replaced as a whole, for checkpoints.
namespace descent {

/// A file that replaces another one as a whole. It is written to a temporary file next to it, which commit() renames: a
/// process that is killed at any moment leaves the old file or the new one. The next replace_file of the same path
/// removes what a killed process has left, unless the file system has no locks (flock). The new file gets the
/// permissions of the old one, whose other names (hard links) keep the old contents. If two processes write the same
/// path at once, the last commit() wins.
///
/// Every member throws std::runtime_error "PATH: cannot be written: REASON" if the system refuses, for instance
/// because the disk is full. The file cannot be committed after that. A moved-from replace_file may only be destroyed
/// or assigned.
class replace_file {
 public:
  /// Opens the temporary file. The folder must be there. A symbolic link stays, and the file that it points to is
  /// replaced. Throws std::invalid_argument if the path is empty or contains a NUL, and std::runtime_error for a path
  /// that is a folder or a device.
  explicit replace_file(std::string path) : file_(std::make_unique<detail::temporary_file>(std::move(path))) {}

  /// Appends bytes.
  void write(std::span<std::byte const> bytes) { file_->append(bytes); }
  /// Overwrites bytes that write() has written. Throws std::invalid_argument if the range ends beyond size().
  void write_at(std::int64_t offset, std::span<std::byte const> bytes) { file_->overwrite(offset, bytes); }
  /// Makes the file visible under its path, and waits until it is on the disk. Throws std::runtime_error if it is not
  /// there, or if a power failure may still undo it. Throws std::logic_error after a failure and at the second call.
  void commit() { file_->commit(); }

  std::string const& path() const { return file_->path(); }  ///< the path passed to the constructor
  std::int64_t size() const { return file_->size(); }  ///< bytes that write() has written

 private:
  std::unique_ptr<detail::temporary_file> file_;
};

}  // namespace descent
