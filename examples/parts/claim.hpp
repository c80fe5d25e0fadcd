// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace example {

/// What an example shows, as a sentence; the program fails with it where it does not hold.
inline void claim(bool holds, std::string const& sentence) {
  if (!holds) throw std::runtime_error("does not hold: " + sentence);
}

inline bool close(double got, double want, double relative, double absolute = 0) {
  return std::fabs(got - want) <= absolute + relative * std::fabs(want);
}

/// At the end of a program. Throws std::runtime_error where stdout could not take what was printed.
inline void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw std::runtime_error("standard output cannot be written");
}

/// The exit code of a program: 1, with the message, when it throws or stdout could not be written.
template <class Main> int exit_code(Main const& run) try {
  run();
  flush_output();
  return 0;
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

}  // namespace example
