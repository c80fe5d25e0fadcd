// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace example {

/// A claim that an example demonstrates. If it does not hold, the program fails with this sentence.
inline void claim(bool holds, std::string const& sentence) {
  if (!holds) throw std::runtime_error("does not hold: " + sentence);
}

inline bool close(double got, double want, double relative, double absolute = 0) {
  return std::fabs(got - want) <= absolute + relative * std::fabs(want);
}

/// Called at the end of a program. Throws std::runtime_error if stdout could not be written.
inline void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw std::runtime_error("standard output cannot be written");
}

/// The exit code of a program: 1, with the message, if it throws or stdout could not be written.
template <class Main> int exit_code(Main const& run) try {
  run();
  flush_output();
  return 0;
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

}  // namespace example
