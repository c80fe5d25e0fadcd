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

/// The program's progress: one line per epoch and, on a terminal, a progress bar where the next line will be.
class console {
 public:
  /// Prints nothing if `to` is null.
  explicit console(std::FILE* to);
  console(console const&) = delete;
  console& operator=(console const&) = delete;
  ~console();

  void say(std::string const& line);
  void begin_run(std::string const& title, std::int64_t total_steps);
  /// The run goes on after this step; prints the lines of the epochs before it.
  void resume(std::vector<epoch_record> const& epochs, std::int64_t step);
  /// `waited`: seconds in which the training waited for data.
  void progress(std::int64_t step, double waited);
  void end_epoch(epoch_record const& record);
  void summary(std::vector<history> const& runs, std::string const& title = "optimizer");

 private:
  using clock = std::chrono::steady_clock;

  void clear_bar();

  std::FILE* to_;
  bool terminal_, bar_shown_ = false;
  std::int64_t total_steps_ = 1, first_step_ = 0;
  clock::time_point started_, drawn_;
};

}  // namespace example
