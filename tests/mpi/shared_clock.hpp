// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/seconds.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace test {

/// A clock of all ranks of one machine, at most 16, in memory that they share, zero at first. It stands still until
/// those that wait miss only ranks that do not come: until each has looked 200 times since the last message anywhere.
/// So no rank that is slow is taken for one that does not come.
class shared_clock {
 public:
  struct memory {
    struct slot {
      std::atomic<std::int64_t> seen, looks;
      std::atomic<bool> is_out;
    };
    std::atomic<std::int64_t> events, moved;
    slot of[16];
  };

  static void begin(void* shared, int rank, int size, std::chrono::nanoseconds deadline) {
    all_ = static_cast<memory*>(shared);
    rank_ = rank, size_ = size, step_ = (deadline + std::chrono::milliseconds(1)).count();
    descent::detail::deadline_clock::source = look;
  }
  static void end() {
    descent::detail::deadline_clock::source = [] { return std::chrono::steady_clock::now(); };
    all_ = nullptr;
  }
  /// This rank has sent something, or something of it is complete.
  static void event() {
    if (all_) ++all_->events;
  }
  /// Nobody need wait for this rank to look: it does not come, or waits no more.
  static void is_out() {
    if (all_) all_->of[rank_].is_out = true;
  }

 private:
  static descent::detail::deadline_clock::time_point look() {
    auto& mine = all_->of[rank_];
    std::int64_t now = all_->events;
    if (mine.seen != now) mine.looks = 0, mine.seen = now;
    else ++mine.looks;
    bool stuck = true, misses_one = false;
    for (int r = 0; r < size_; ++r) {
      auto const& one = all_->of[r];
      misses_one = misses_one || one.is_out;
      stuck = stuck && (one.is_out || (one.looks >= 200 && one.seen == now));
    }
    if (stuck && misses_one && all_->events.compare_exchange_strong(now, now + 1)) all_->moved += step_;
    return descent::detail::deadline_clock::time_point(std::chrono::hours(1) + std::chrono::nanoseconds(all_->moved));
  }

  static inline memory* all_ = nullptr;
  static inline int rank_ = 0, size_ = 1;
  static inline std::int64_t step_ = 0;
};

}  // namespace test
