// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <sys/wait.h>
#include <unistd.h>

namespace test {

/// Runs f in a child of fork(), which a signal ends after a minute. Returns 0 if f returned true, 1 if false, 2 if it
/// threw, and 256 more than the number of a signal.
template <class F> int in_child(F const& f) {
  pid_t const child = ::fork();
  if (child == 0) {
    ::alarm(60);
    int code = 2;
    try {
      code = f() ? 0 : 1;
    } catch (...) {}
    ::_exit(code);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

}  // namespace test
