// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/comm/detail/handshake.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace descent::comm {

/// A rendezvous through files descent-JOB.RANK in a folder that all ranks see and nobody else writes to, for
/// clusters where the address of rank 0 or a free port is not known beforehand (else by_tcp, which needs no folder):
///
///     comm::by_file{.folder = "/scratch/me", .job = at.job}(rank, size, id);
///
/// Rank 0's file holds its value and, for each rank, the random number from that rank's file. A file left over from an
/// earlier start has other numbers and is ignored, as is a truncated or altered one. A call returns when all ranks have
/// rank 0's value; the files are then removed. Throws comm_error at the deadline, with the missing ranks and the
/// ignored files. On NFS a new file may stay invisible for as long as directories are cached (acdirmax, default 60 s).
struct by_file {
  /// The folder, the job's name (up to 200 characters without '/', unique among running jobs), and the longest wait.
  std::string folder = {};
  std::string job = {};
  std::chrono::nanoseconds deadline = std::chrono::seconds(120);

  template <class T> void operator()(int rank, int size, T& value) const {
    static_assert(std::is_trivially_copyable_v<T>, "by_file: the value must be trivially copyable");
    exchange(rank, size, std::as_writable_bytes(std::span(&value, 1)));
  }

 private:
  struct call;
  void exchange(int rank, int size, std::span<std::byte> value) const;
};

struct by_file::call {
  by_file const& by;
  int rank;
  detail::note own;

  using reasons = std::map<std::size_t, std::string>;

  /// A file of this call. The destructor removes it.
  struct removed {
    std::string path;
    ~removed() { ::unlink(path.c_str()); }
  };
  struct contents {
    detail::note head;
    std::vector<std::byte> body;
  };

  std::size_t size() const { return std::size_t(own.size); }
  std::string path(std::size_t r) const { return by.folder + "/descent-" + by.job + "." + std::to_string(r); }

  void give(std::span<std::byte const> value) const {
    detail::time_limit limit(by.deadline);
    std::uint64_t const number = detail::random_number();
    std::vector<std::uint64_t> come(size(), 0);
    std::vector<bool> has(size(), false);
    reasons passed_over;
    come[0] = number;
    has[0] = true;
    removed const mine{path(0)};
    for (bool changed = true;; limit.pause()) {
      bool all = true;
      bool const last = limit.passed();  // read once more after the deadline: this process may be slow
      for (std::size_t r = 1; r < size(); ++r) {
        if (has[r]) continue;
        if (auto const t = read(r, 0, passed_over)) {
          has[r] = t->head.to == number && t->head.from == come[r];
          if (t->head.from != come[r]) come[r] = t->head.from, changed = true;
        }
        all = all && has[r];
      }
      if (all) break;
      if (changed) {
        auto const numbers = std::as_bytes(std::span(come));
        std::vector<std::byte> body(numbers.begin(), numbers.end());
        body.insert(body.end(), value.begin(), value.end());
        write(number, 0, body);
        changed = false;
      }
      require_alone(number, size() * sizeof(std::uint64_t) + value.size());
      if (last) {
        std::vector<int> absent = detail::ranks_without(come);
        bool const came = absent.empty();
        if (came) absent = detail::ranks_without(has);
        throw comm_error("by_file: rank 0 waited " + limit.text() + " in " + by.folder + " for " +
                         detail::rank_list(absent) + (came ? " to read the value" : "") + list(passed_over));
      }
    }
    ::unlink(mine.path.c_str());
    for (std::size_t r = 1; r < size(); ++r) ::unlink(path(r).c_str());
  }

  void take(std::span<std::byte> value) const {
    detail::time_limit limit(by.deadline);
    std::uint64_t const number = detail::random_number();
    std::vector<std::uint64_t> come(size(), 0);
    reasons passed_over;
    auto const me = std::size_t(rank);
    bool has = false;
    write(number, 0, {});
    for (removed const mine{path(me)};; limit.pause()) {
      bool const last = limit.passed();
      if (has && ::access(mine.path.c_str(), F_OK) != 0 && errno == ENOENT) return;
      require_alone(number, 0);
      auto const t = has ? std::nullopt : read(0, size() * sizeof(std::uint64_t) + value.size(), passed_over);
      if (t) {
        std::memcpy(come.data(), t->body.data(), size() * sizeof(std::uint64_t));
        if (come[me] == number && detail::ranks_without(come).empty()) {
          auto const* const sent = t->body.data() + size() * sizeof(std::uint64_t);
          if (!value.empty()) std::memcpy(value.data(), sent, value.size());
          write(number, t->head.from, {});
          has = true;
        }
      }
      if (!last) continue;
      std::string const waited =
          "by_file: rank " + std::to_string(rank) + " waited " + limit.text() + " in " + by.folder;
      if (has) throw comm_error(waited + " for rank 0 to confirm that all have read the value");
      if (come[me] != number) throw comm_error(waited + " for rank 0" + list(passed_over));
      throw comm_error(waited + " for " + detail::rank_list(detail::ranks_without(come)) + ", as does rank 0" +
                       list(passed_over));
    }
  }

 private:
  std::string list(reasons const& passed_over) const {
    std::string text;
    for (auto const& [r, why] : passed_over)
      if (text.size() < 1000) text += "; ignored " + path(r) + ": " + why;
    return text;
  }

  /// Reads the file of rank r. Empty unless it belongs to this job, is intact and has a body of `bytes` bytes.
  std::optional<contents> read(std::size_t r, std::size_t bytes, reasons& passed_over) const {
    contents t;
    t.body.resize(sizeof t.head + bytes + 1);
    detail::descriptor const file(::open(path(r).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    int const error = errno;
    passed_over.erase(r);
    if (!file && error == ENOENT) return {};
    std::size_t n = 0;
    for (ssize_t got = 1; file && n < t.body.size() && got != 0;) {
      got = ::read(file.get(), t.body.data() + n, t.body.size() - n);
      if (got > 0) n += std::size_t(got);
      else if (got < 0 && errno != EINTR) break;
    }
    std::string why;
    if (!file) why = detail::system_message(error);
    else if (n < sizeof t.head) why = "it is truncated, " + std::to_string(n) + " bytes";
    else std::memcpy(&t.head, t.body.data(), sizeof t.head), why = detail::problem_of(t.head, own);
    t.body.erase(t.body.begin(), t.body.begin() + std::ptrdiff_t(sizeof t.head));
    if (why.empty()) why = detail::wrong_size(n, sizeof t.head + bytes);
    t.body.resize(bytes);
    if (why.empty()) why = detail::wrong_sum(t.head, t.body);
    if (why.empty() && std::size_t(t.head.rank) != r) why = "it is from rank " + std::to_string(t.head.rank);
    if (why.empty()) return t;
    passed_over[r] = why;
    return {};
  }

  /// Throws comm_error if another process has written this rank's file.
  void require_alone(std::uint64_t number, std::size_t bytes) const {
    reasons ignored;
    auto const t = read(std::size_t(rank), bytes, ignored);
    if (t && t->head.from != number)
      throw comm_error("by_file: two processes claim rank " + std::to_string(rank) + " of job '" + by.job + "' in " +
                       by.folder);
  }

  /// Writes this rank's file atomically, by renaming a temporary file.
  void write(std::uint64_t from, std::uint64_t to, std::span<std::byte const> body) const {
    detail::note head = own;
    head.kind = rank == 0 ? detail::note::value : detail::note::here;
    head.from = from;
    head.to = to;
    auto const bytes = detail::sealed(head, body);
    std::string const name = path(std::size_t(rank)), temporary = name + "." + std::to_string(from) + ".tmp";
    auto const fail = [&](int error) {
      ::unlink(temporary.c_str());
      throw comm_error("by_file: cannot write " + name + ": " + detail::system_message(error));
    };
    int const flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    detail::descriptor const file(::open(temporary.c_str(), flags, 0600));
    if (!file) fail(errno);
    for (std::size_t n = 0; n < bytes.size();) {
      ssize_t const put = ::write(file.get(), bytes.data() + n, bytes.size() - n);
      if (put >= 0) n += std::size_t(put);
      else if (errno != EINTR) fail(errno);
    }
    if (::fsync(file.get()) != 0) fail(errno);
    if (std::rename(temporary.c_str(), name.c_str()) != 0) fail(errno);
  }
};

inline void by_file::exchange(int rank, int size, std::span<std::byte> value) const {
  detail::require_meeting("by_file", rank, size, "job", job, deadline, 200);
  if (size == 1) return;
  if (job.find('/') != job.npos)
    throw std::invalid_argument("by_file: job must be usable in a file name, without '/', is '" + job + "'");
  call const c{*this, rank, detail::make_note(detail::note::here, rank, size, value.size(), job)};
  if (rank == 0) c.give(value);
  else c.take(value);
}

}  // namespace descent::comm
