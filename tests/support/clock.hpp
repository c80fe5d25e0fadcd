// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/seconds.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <sys/mman.h>
#include <thread>

/// A clock that the test controls, and waiting for other threads: slowness never changes a result.
namespace test {

#ifndef DESCENT_TEST_PATIENCE  // seconds; more than anything that works takes
#define DESCENT_TEST_PATIENCE 60
#endif
constexpr std::chrono::seconds patience{DESCENT_TEST_PATIENCE};

/// While it exists, deadlines of this process and of its forks use this clock. It stands still between calls of
/// advance(), or advances by `per_look` at each look, so that a single waiter finishes at once.
class clock {
  using ns = std::chrono::nanoseconds;
  using of_library = descent::detail::deadline_clock;

 public:
  /// How far the clock of this thread is ahead of the others'.
  static inline thread_local std::atomic<ns::rep> const* own = nullptr;

  explicit clock(ns per_look = ns{0}) {
    auto& s = state();
    s.start = std::chrono::steady_clock::now().time_since_epoch().count();
    s.moved = 0;
    s.per_look = per_look.count();
    of_library::source = look;
  }
  clock(clock const&) = delete;
  ~clock() {
    of_library::source = [] { return std::chrono::steady_clock::now(); };
  }
  static void advance(ns by) { state().moved += by.count(); }
  static of_library::time_point now() { return look(); }

 private:
  /// Shared between processes.
  struct shared { std::atomic<ns::rep> start, moved, per_look; };
  static shared& state() {
    static shared& one =
        *new (mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) shared{};
    return one;
  }
  /// Advances once `patience` is over, so that a failing test still ends.
  static of_library::time_point look() {
    auto& s = state();
    ns::rep const start = s.start, moved = s.moved += s.per_look;
    ns::rep const real = std::chrono::steady_clock::now().time_since_epoch().count();
    ns::rep const late = std::max(ns::rep{0}, real - start - ns(patience).count());
    return of_library::time_point(ns(start + moved + late + (own ? own->load() : 0)));
  }
};

/// Advances the clock while it exists.
class time_goes_on {
  std::jthread hand_{[](std::stop_token stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      clock::advance(std::chrono::milliseconds(50));
  }};
};

/// Waits until f() is true; false if `patience` ends first.
template <class F> bool comes_true(F const& f) {
  auto const limit = std::chrono::steady_clock::now() + patience;
  for (; !f(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (std::chrono::steady_clock::now() > limit) return false;
  return true;
}

}  // namespace test
