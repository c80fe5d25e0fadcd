// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <sys/types.h>
#include <unistd.h>

/// A child of fork() has one thread. Those that ran beside it stay in its parent: what waits for them waits for ever,
/// and locks that they held stay locked.
namespace descent::detail {

/// The process in which an object was made.
class home_process {
 public:
  pid_t id() const { return id_; }
  bool is_here() const { return ::getpid() == id_; }

 private:
  pid_t id_ = ::getpid();
};

/// Whether the process from which this one was forked has run loops on a team. Its threads are not here; another team
/// would wait for them. Costs a system call, about 0.1 us.
inline bool has_lost_team() noexcept {
  static pid_t of_team = 0;
  pid_t const here = ::getpid();
  pid_t was = 0;
  return !__atomic_compare_exchange_n(&of_team, &was, here, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) && was != here;
}
/// The same for OpenMP's team. Clang's runtime starts new threads in a child, GCC's does not.
inline bool has_lost_omp_team() noexcept {
#if defined(__clang__)
  return false;
#else
  return has_lost_team();
#endif
}

}  // namespace descent::detail
