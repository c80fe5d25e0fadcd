// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>

#if !__has_include(<thrust/for_each.h>)
#error descent/backends/thrust.hpp needs Thrust: add -isystem <CUDA Toolkit>/include/cccl
#include <descent_needs_thrust>
#endif
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/cpp/execution_policy.h>
#if defined(_OPENMP)
#include <thrust/system/omp/execution_policy.h>
#endif

/// Thrust's host systems, for host<thrust_cpp>{} and host<thrust_omp>{}. They give the same bits as cpp and omp, which
/// need no Thrust. tbb.hpp has the one for TBB.
namespace descent {

namespace detail {
template <class Policy> void each_through(Policy const& policy, std::int64_t n, loop_body f) {
  thrust::for_each_n(policy, thrust::counting_iterator<std::int64_t>(0), n, f);
}
}  // namespace detail

/// The calling thread only.
struct thrust_cpp {
  /// The name in explain().
  static constexpr char const* name() { return "Thrust cpp"; }
  static void each(std::int64_t n, detail::loop_body f) { detail::each_through(thrust::cpp::par, n, f); }
};
/// The backend that runs on a Thrust execution policy: ds::optimizer{params, ds::adamw{}, ds::on(thrust::omp::par)}.
inline host<thrust_cpp> on(decltype(thrust::cpp::par) const&) { return {}; }

#if defined(_OPENMP)
/// OpenMP's threads (OMP_NUM_THREADS). In a child of fork() as omp.
struct thrust_omp {
  /// The name in explain().
  static constexpr char const* name() { return "Thrust omp"; }
  static void each(std::int64_t n, detail::loop_body f) {
    if (detail::has_lost_omp_team()) return cpp::each(n, f);
    detail::each_through(thrust::omp::par, n, f);
  }
};
inline host<thrust_omp> on(decltype(thrust::omp::par) const&) { return {}; }
#endif

}  // namespace descent
