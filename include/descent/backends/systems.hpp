// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/floating_point_mode.hpp>
#include <descent/core/detail/home_process.hpp>
#include <descent/version.hpp>

#include <cstdint>
#include <exception>
#if defined(_OPENMP)
#include <omp.h>
#endif

/// The systems that run the host backend's loops. each() calls f(i) for i in [0, n), in any order, and returns when all
/// calls are done. It need not catch exceptions: detail::each_of passes an f that does not throw.
namespace descent {

namespace detail {

/// The body of a loop, of any type. The body must outlive the loop. The loop itself is compiled once per program, not
/// once for every pass of every optimizer.
class loop_body {
 public:
  template <class F> loop_body(F const& f) : body_(&f), call_(call<F>) {}
  void operator()(std::int64_t i) const { call_(body_, i); }

 private:
  template <class F> static void call(void const* body, std::int64_t i) { (*static_cast<F const*>(body))(i); }

  void const* body_;
  void (*call_)(void const*, std::int64_t);
};

/// A loop body for the threads of a team. They compute in the floating-point mode of the thread that made it. Keeps its
/// first exception, which would otherwise end a thread, and with it the program.
class caught_body {
 public:
  explicit caught_body(loop_body f) : f_(f) {}
  void operator()(std::int64_t i) const noexcept {
    if (__atomic_load_n(&stopped_, __ATOMIC_RELAXED)) return;
    floating_point_scope const as_caller(mode_);
    try {
      f_(i);
    } catch (...) {
      if (!__atomic_exchange_n(&stopped_, true, __ATOMIC_SEQ_CST)) first_ = std::current_exception();
    }
  }
  /// Call it when the loop has ended.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  loop_body f_;
  floating_point_mode mode_ = floating_point_mode::of_this_thread();
  mutable bool stopped_ = false;  // set by any thread; <atomic> is expensive to include
  mutable std::exception_ptr first_;
};

/// Decides from how the last loop went whether a team of threads runs the next ones. If other programs want the cores,
/// a team waits for the time slices of its threads: milliseconds, for a loop that takes one thread microseconds.
class team_record {
 public:
  team_record() = default;
  /// Takes the time of a team's loop, and that of the calling thread's share. If time was lost, the next loops run on
  /// one thread for eight times as long, so a team that never keeps up costs an eighth.
  team_record(double seconds, double share, int threads) {
    double const by_one = share * threads, lost = seconds - by_one;
    if (lost > 0 && by_one > 0) alone_ = 8 * lost < most * by_one ? std::int64_t(8 * lost / by_one) : most;
  }
  /// Whether the calling thread runs the next loop alone.
  bool alone() { return alone_ > 0 && alone_-- > 0; }

 private:
  static constexpr std::int64_t most = 4096;  // a machine may sleep
  std::int64_t alone_ = 0;
};

/// Below this many elements one thread is as fast as a team that is awake.
inline constexpr std::int64_t fork_worth = 64 * 1024;

}  // namespace detail

/// The calling thread only.
struct cpp {
  /// The name in explain().
  static constexpr char const* name() { return "cpp"; }
  static void each(std::int64_t n, detail::loop_body f) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
};

#if defined(_OPENMP)
/// OpenMP's threads (OMP_NUM_THREADS): all or one, because a team that changes its size ends threads and starts others.
/// With GCC one thread in a child of fork() whose parent had a team.
struct omp {
  /// The name in explain().
  static constexpr char const* name() { return "omp"; }
  static void each(std::int64_t n, detail::loop_body f) {
    static thread_local detail::team_record record;
    if (record.alone()) cpp::each(n, f);
    else record = in_team(n, f);
  }
  /// Runs the loop on all threads, even where one would be faster.
  static detail::team_record in_team(std::int64_t n, detail::loop_body f) {
    if (detail::has_lost_omp_team()) return cpp::each(n, f), detail::team_record();
    double const begin = omp_get_wtime();
    double share = 0;
    int threads = 1;
#pragma omp parallel
    {
      double const own_begin = omp_get_wtime();
#pragma omp for schedule(static) nowait
      for (std::int64_t i = 0; i < n; ++i) f(i);
      if (omp_get_thread_num() == 0) share = omp_get_wtime() - own_begin, threads = omp_get_num_threads();
    }
    return {omp_get_wtime() - begin, share, threads};
  }
};
using default_system = omp;
#else
using default_system = cpp;
#endif

namespace detail {
/// Runs a loop whose iterations cover `elements` numbers in total. Throws the first exception of f; iterations that
/// have not begun by then are skipped.
template <class System>
void each_of(std::int64_t elements, std::int64_t n, loop_body f, std::int64_t worth = fork_worth) {
  if (elements < worth) return cpp::each(n, f);
  caught_body const caught(f);
  System::each(n, loop_body(caught));
  caught.rethrow();
}
}  // namespace detail

}  // namespace descent
