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

/// What the program says while it works: a line per epoch, and on a terminal a progress bar that
/// stands where the next line will.
class console {
 public:
  /// Says nothing if there is no file.
  explicit console(std::FILE* to);

  void say(std::string const& line);
  void begin_run(std::string const& title, std::int64_t total_steps);
  void progress(std::int64_t step);
  void end_epoch(epoch_record const& record);
  void summary(std::vector<history> const& runs);

 private:
  using clock = std::chrono::steady_clock;

  void clear_bar();

  std::FILE* to_;
  bool terminal_, bar_shown_ = false;
  std::int64_t total_steps_ = 1;
  clock::time_point started_, drawn_;
};

}  // namespace example
