// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/io/detail/file_calls.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace descent::detail {

/// The name of the file that a temporary file would have become; empty for names that temporary_file does not give.
inline std::string_view target_of_temporary(std::string_view file) {
  auto const drop = [&](std::string_view text) {
    bool const is = file.ends_with(text);
    if (is) file.remove_suffix(text.size());
    return is;
  };
  auto const drop_all = [&](std::string_view these) {
    std::size_t const n = file.size() - (file.find_last_not_of(these) + 1);
    file.remove_suffix(n);
    return n;
  };
  bool const is =
      drop(".tmp") && drop_all("0123456789abcdef") == 16 && drop("-") && drop_all("0123456789") > 0 && drop(".");
  return is ? file : std::string_view();
}
/// Removes the temporary files in an open folder that killed processes have left, if wanted(target).
template <class F> void remove_abandoned(int folder, F const& wanted) {
  descriptor again(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, int (*)(DIR*)> const list(again ? ::fdopendir(again.get()) : nullptr, ::closedir);
  if (!list) return;
  again.release();
  while (dirent const* const entry = ::readdir(list.get())) {
    auto const target = target_of_temporary(entry->d_name);
    if (target.empty() || !wanted(target)) continue;
    descriptor const other(::openat(folder, entry->d_name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (other && ::flock(other.get(), LOCK_EX | LOCK_NB) == 0)
      file_calls::run("unlink", [&] { return ::unlinkat(folder, entry->d_name, 0); });
  }
}
template <class F> void remove_abandoned(std::string const& folder, F const& wanted) {
  descriptor const open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (open) remove_abandoned(open.get(), wanted);
}

/// The path behind all symbolic links, of which the last may point to a file that is not there yet.
inline std::filesystem::path behind_links(std::filesystem::path at, std::error_code& error) {
  for (int links = 0; std::filesystem::is_symlink(std::filesystem::symlink_status(at, error)); ++links) {
    if (links == 40) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    auto const to = error ? std::filesystem::path() : std::filesystem::read_symlink(at, error);
    if (error) return at;
    at = at.parent_path() / to;
  }
  error.clear();  // of a file that is not there
  return at;
}

/// The file "<path>.<pid>-<nonce>.tmp", which becomes <path> when it is complete. Its folder is opened once, so it is
/// the same one for all calls. The writer holds a lock on the file: one without a lock was left by a process that was
/// killed, and the next writer of the same path removes it. On file systems without locks it stays.
class temporary_file {
 public:
  explicit temporary_file(std::string path) : path_(std::move(path)) {
    if (path_.empty() || path_.find('\0') != path_.npos)
      throw std::invalid_argument("replace_file: the path must have characters, and none of them NUL");
    std::error_code error;
    std::filesystem::path const target = behind_links(path_, error);
    if (error) fail(error.value());
    name_ = target.has_filename() ? target.filename().string() : ".";
    std::string const folder = target.has_parent_path() ? target.parent_path().string() : ".";
    folder_ =
        descriptor(file_calls::run("open", [&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!folder_) fail(errno, "its folder cannot be opened: ");
    look_at_old();
    remove_abandoned(folder_.get(), [this](std::string_view of) { return of == name_; });
    for (int tries = 0; !create(); ++tries)
      if (tries == 100) fail(EWOULDBLOCK);
  }
  temporary_file(temporary_file const&) = delete;
  ~temporary_file() {
    // A process that was forked from the writer has a copy of this object, but not the file.
    if (step_ != step::done && !temporary_.empty() && ::getpid() == writer_) remove(temporary_);
  }

  std::string const& path() const { return path_; }
  std::int64_t size() const { return size_; }

  void append(std::span<std::byte const> bytes) {
    put(size_, bytes);
    size_ += std::int64_t(bytes.size());
    begin_to_disk();
  }
  void overwrite(std::int64_t offset, std::span<std::byte const> bytes) {
    if (offset < 0 || offset > size_ || std::int64_t(bytes.size()) > size_ - offset)
      throw std::invalid_argument("replace_file: write_at() must stay within the " + std::to_string(size_) +
                                  " bytes that are written, is from " + std::to_string(offset) + " on " +
                                  std::to_string(bytes.size()) + " bytes");
    put(offset, bytes);
  }
  void commit() {
    require_writing();
    step_ = step::failed;
    keep_owner();
    if (replaces_) ::fchmod(file_.get(), mode_);
    if (file_calls::run("fsync", [&] { return ::fsync(file_.get()); }) != 0) fail(errno);
    auto const rename = [&] { return ::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()); };
    if (file_calls::run("rename", rename) != 0) fail(errno);
    step_ = step::done;
    file_ = descriptor();  // not earlier: without its lock another writer would remove the file
    // Some file systems cannot synchronize a folder, and say EINVAL.
    if (file_calls::run("fsync", [&] { return ::fsync(folder_.get()); }) != 0 && errno != EINVAL)
      throw std::runtime_error(path_ + ": is written, but a power failure may undo it: its folder cannot be " +
                               "synchronized: " + system_message(errno));
  }

 private:
  enum class step { writing, failed, done };

  /// Refuses what cannot be replaced. Takes the permissions of the old file, so that a private one stays private, and
  /// its owner and group as far as this process may give files to them: root may.
  void look_at_old() {
    struct stat old;
    if (::fstatat(folder_.get(), name_.c_str(), &old, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) fail(errno);
      return;
    }
    if (S_ISDIR(old.st_mode)) fail(EISDIR);
    if (!S_ISREG(old.st_mode)) throw std::runtime_error(path_ + ": cannot be written: it is not a regular file");
    mode_ = old.st_mode & 0777, owner_ = old.st_uid, group_ = old.st_gid;
    replaces_ = true;
  }
  /// Before permissions are set: a change of the owner may clear some. Not all file systems have owners.
  void keep_owner() {
    if (!replaces_ || (owner_ == ::geteuid() && group_ == ::getegid())) return;
    if (::fchown(file_.get(), owner_, group_) == 0) return;
    [[maybe_unused]] int const of_group = ::fchown(file_.get(), ::uid_t(-1), group_);
  }
  /// False if there is such a file, or if another writer has taken it for an abandoned one before it was locked.
  bool create() {
    std::random_device random;
    char ending[48];
    std::snprintf(ending, sizeof ending, ".%ld-%08x%08x.tmp", long(writer_), random(), random());
    temporary_ = name_ + ending;
    int const flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    // Its owner may write to it until it is complete: locks need that on some file systems.
    auto const make = [&] { return ::openat(folder_.get(), temporary_.c_str(), flags, mode_ | S_IWUSR); };
    file_ = descriptor(file_calls::run("create", make));
    if (!file_) {
      temporary_.clear();
      if (errno == EEXIST) return false;
      fail(errno, errno == ENAMETOOLONG ? "with the ending of the temporary file: " : "");
    }
    bool const locked = file_calls::run("lock", [&] { return ::flock(file_.get(), LOCK_EX | LOCK_NB); }) == 0;
    bool const taken = !locked && errno == EWOULDBLOCK;
    struct stat about;
    if (!taken && ::fstat(file_.get(), &about) == 0 && about.st_nlink > 0) return true;
    remove(temporary_);
    return false;
  }
  void remove(std::string const& file) const {
    file_calls::run("unlink", [&] { return ::unlinkat(folder_.get(), file.c_str(), 0); });
  }
  void put(std::int64_t offset, std::span<std::byte const> bytes) {
    require_writing();
    constexpr std::size_t most = std::size_t{1} << 30;  // Linux writes less than 2 GiB at once
    while (!bytes.empty()) {
      auto const n = file_calls::run("write", std::min(bytes.size(), most), [&](std::size_t some) {
        return ::pwrite(file_.get(), bytes.data(), some, ::off_t(offset));
      });
      if (n <= 0) {
        step_ = step::failed;
        fail(n < 0 ? errno : EIO);
      }
      offset += n;
      bytes = bytes.subspan(std::size_t(n));
    }
  }
  /// Lets the disk begin with what was appended, so that commit() has less to wait for.
  void begin_to_disk() {
#if defined(SYNC_FILE_RANGE_WRITE)
    constexpr std::int64_t at_once = 8 << 20;
    if (size_ - begun_ < at_once) return;
    ::sync_file_range(file_.get(), begun_, size_ - begun_, SYNC_FILE_RANGE_WRITE);
    begun_ = size_;
#endif
  }
  void require_writing() const {
    if (step_ != step::writing)
      throw std::logic_error("replace_file: " + path_ +
                             (step_ == step::done ? " is committed already" : " could not be written before"));
  }
  [[noreturn]] void fail(int error, char const* what = "") const {
    throw std::runtime_error(path_ + ": cannot be written: " + what + system_message(error));
  }

  std::string path_;  ///< as it was given
  std::string name_;  ///< in the folder, behind symbolic links
  std::string temporary_;
  ::pid_t writer_ = ::getpid();
  ::mode_t mode_ = 0666;
  ::uid_t owner_ = 0;
  ::gid_t group_ = 0;
  bool replaces_ = false;
  descriptor folder_, file_;
  std::int64_t size_ = 0, begun_ = 0;  ///< appended; of that, what the disk has begun with
  step step_ = step::writing;
};

}  // namespace descent::detail
