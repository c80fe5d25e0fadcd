// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/error.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

/// Settings, errors and reports of processes that read records, see processes.hpp.
namespace descent {

/// How many processes read, and what happens to one that ends or takes too long. None of it changes what is read.
struct processes {
  int count = 1;  ///< that read at the same time
  bool replace = true;  ///< whether a new process takes the place of one that has ended
  std::chrono::nanoseconds deadline{0};  ///< for one record, from when a process is asked for it; 0: none

  /// Throws std::invalid_argument if a field is out of range.
  void check() const {
    detail::require(count >= 1 && count <= 256, "processes", "count", "in [1, 256]", count);
    detail::require(deadline.count() >= 0, "processes", "deadline", "at least 0 ns", deadline.count());
  }
};

/// A process ended while it read a record: it crashed, called exit, was killed, or missed the deadline.
struct worker_died : std::runtime_error {
  int worker;  ///< its number, in [0, processes::count)
  std::int64_t process;  ///< its process id; another process may have it by now
  std::int64_t record;  ///< what it read
  int signal;  ///< that killed it, or 0 if it ended by itself
  int status;  ///< with which it ended, or 0 if a signal killed it
  bool late;  ///< whether it was killed because of the deadline
  worker_died(std::string const& what, int w, std::int64_t p, std::int64_t r, int by, int with, bool after)
      : std::runtime_error(what), worker(w), process(p), record(r), signal(by), status(with), late(after) {}
};

/// What the processes of a source have done since its construction.
struct process_report {
  std::int64_t reads = 0;  ///< records read without an error
  std::int64_t died = 0;  ///< processes that have ended, also those that read nothing at that time
  std::int64_t replaced = 0;  ///< of them, those with a new process in their place
};

}  // namespace descent
