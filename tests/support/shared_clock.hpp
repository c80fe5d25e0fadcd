// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/seconds.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace test {

/// A clock of all ranks of one machine, at most 16, in shared memory that starts as zeros. It stands still until the
/// waiting ranks miss only ranks that do not come: until each has looked `looks` times since the last message anywhere.
/// So a slow rank is never taken for a missing one.
class shared_clock {
 public:
  struct memory {
    struct slot {
      std::atomic<std::int64_t> seen, looks, come;
      std::atomic<bool> is_out, is_late;
    };
    std::atomic<std::int64_t> events, moved;
    slot of[16];
  };
  /// The memory, in a file that all ranks name.
  static memory* in_file(std::string const& path) {
    int const file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    void* at = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(memory)) == 0)
      at = mmap(nullptr, sizeof(memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (at == MAP_FAILED) throw std::runtime_error("no clock in " + path);
    return static_cast<memory*>(at);
  }

  /// From now on deadlines use this clock, which advances by `step`.
  static void begin(memory* shared, int rank, int size, std::chrono::nanoseconds step, int looks = 200) {
    if (size > 16) throw std::invalid_argument("shared_clock has room for 16 ranks");
    all_ = shared;
    rank_ = rank, size_ = size, looks_ = looks, step_ = step.count();
    descent::detail::deadline_clock::source = look;
  }
  static void end() {
    descent::detail::deadline_clock::source = [] { return std::chrono::steady_clock::now(); };
    all_ = nullptr;
    counter_ = nullptr;
  }
  /// This rank has sent something or completed a part of it.
  static void event() {
    if (all_) ++all_->events;
  }
  /// Nobody needs to wait for this rank to look: it does not come, or no longer waits.
  static void is_out(bool out = true) {
    if (all_) all_->of[rank_].is_out = out;
  }
  /// The others wait for this rank, which still looks.
  static void is_late() {
    if (all_) all_->of[rank_].is_late = true;
  }
  /// Looks of this thread do not count: it may look while the thread that hears the others has no time to run.
  static void does_not_count() { counts_ = false; }

  /// The counter of this rank; the threads whose looks count publish it to the others.
  static void counts_here(std::int64_t const* counter) { counter_ = counter; }
  static bool others_have_come(std::int64_t count) {
    return of_others([&](memory::slot const& one) { return one.come >= count; });
  }
  static bool others_are_out() {
    return of_others([](memory::slot const& one) { return one.is_out.load(); });
  }

 private:
  template <class F> static bool of_others(F const& f) {
    for (int r = 0; r < size_; ++r)
      if (r != rank_ && !f(all_->of[r])) return false;
    return true;
  }
  static descent::detail::deadline_clock::time_point look() {
    if (counts_) {
      auto& mine = all_->of[rank_];
      if (std::int64_t const* const counter = counter_) mine.come = __atomic_load_n(counter, __ATOMIC_ACQUIRE);
      std::int64_t now = all_->events;
      if (mine.seen != now) mine.looks = 0, mine.seen = now;
      else ++mine.looks;
      bool stuck = true, misses_one = false;
      for (int r = 0; r < size_; ++r) {
        auto const& one = all_->of[r];
        misses_one = misses_one || one.is_out || one.is_late;
        stuck = stuck && (one.is_out || (one.looks >= looks_ && one.seen == now));
      }
      if (stuck && misses_one && all_->events.compare_exchange_strong(now, now + 1)) all_->moved += step_;
    }
    return descent::detail::deadline_clock::time_point(std::chrono::hours(1) + std::chrono::nanoseconds(all_->moved));
  }

  static inline memory* all_ = nullptr;
  static inline std::atomic<std::int64_t const*> counter_ = nullptr;
  static inline int rank_ = 0, size_ = 1, looks_ = 0;
  static inline std::int64_t step_ = 0;
  static inline thread_local bool counts_ = true;
};

}  // namespace test
