// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/cpp/execution_policy.h>
#if defined(_OPENMP)
#include <thrust/system/omp/execution_policy.h>
#endif

#include <cstdint>

/// Thrust's host systems: each() calls f(i) for i in [0, n) and returns when all are done.
namespace descent {

/// The calling thread alone.
struct cpp {
  static constexpr char const* name() { return "cpp"; }
  template <class F> static void each(std::int64_t n, F const& f) {
    thrust::for_each_n(thrust::cpp::par, thrust::counting_iterator<std::int64_t>(0), n, f);
  }
};

#if defined(_OPENMP)
/// OpenMP's threads (OMP_NUM_THREADS).
struct omp {
  static constexpr char const* name() { return "omp"; }
  template <class F> static void each(std::int64_t n, F const& f) {
    thrust::for_each_n(thrust::omp::par, thrust::counting_iterator<std::int64_t>(0), n, f);
  }
};
using default_system = omp;
#else
using default_system = cpp;
#endif

}  // namespace descent
