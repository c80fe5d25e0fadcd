// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace example {

/// The program's progress: one line per epoch, or one per run in a comparison, and, on a terminal, a progress bar where
/// the next line will be. The head of a table is printed when the training has begun, so that a mistake is all that is
/// printed.
class console {
 public:
  /// Prints nothing if `to` is null.
  explicit console(std::FILE* to);
  console(console const&) = delete;
  console& operator=(console const&) = delete;
  ~console();

  void say(std::string const& line);
  /// Printed with the first head.
  void announce(std::string const& line);
  /// The table has a line for each of these runs; `title` is what their names are.
  void compare(std::string const& title, std::vector<std::string> const& names);
  void begin_run(std::string const& title, std::int64_t total_steps);
  /// The run goes on after this step; prints the lines of the epochs before it.
  void resume(std::vector<epoch_record> const& epochs, std::int64_t step);
  /// `waited`: seconds in which the training waited for data.
  void progress(std::int64_t step, double waited);
  void end_epoch(epoch_record const& record);
  void end_run(history const& run);

 private:
  using clock = std::chrono::steady_clock;

  void show_head();
  void clear_bar();

  std::FILE* to_;
  bool terminal_, bar_shown_ = false, comparing_ = false;
  int width_ = 0;  // of the names that are compared
  std::string head_, title_;
  std::int64_t total_steps_ = 1, first_step_ = 0;
  clock::time_point started_, drawn_;
};

}  // namespace example
