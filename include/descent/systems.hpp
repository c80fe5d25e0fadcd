// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

/// What the host backend's loops run on. each() calls f(i) for i in [0, n), in any order, and returns when all are done;
/// what f throws on another thread than the caller's ends the program.
namespace descent {

namespace detail {

/// A loop's body of any type, which must outlive the loop: the loop itself is compiled once for a program, and not once
/// for every pass of every optimizer.
class loop_body {
 public:
  template <class F>
  loop_body(F const& f)
      : body_(&f), call_([](void const* body, std::int64_t i) { (*static_cast<F const*>(body))(i); }) {}
  void operator()(std::int64_t i) const { call_(body_, i); }

 private:
  void const* body_;
  void (*call_)(void const*, std::int64_t);
};

}  // namespace detail

/// The calling thread alone.
struct cpp {
  static constexpr char const* name() { return "cpp"; }
  static void each(std::int64_t n, detail::loop_body f) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
};

#if defined(_OPENMP)
/// OpenMP's threads (OMP_NUM_THREADS).
struct omp {
  static constexpr char const* name() { return "omp"; }
  static void each(std::int64_t n, detail::loop_body f) {
#pragma omp parallel for
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
};
using default_system = omp;
#else
using default_system = cpp;
#endif

}  // namespace descent
