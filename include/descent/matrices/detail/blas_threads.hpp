// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/host.hpp>

#include <cstdint>
#include <mutex>
#if defined(_OPENMP)
#include <omp.h>
#endif

extern "C" {
// OpenBLAS's; null if another BLAS is linked.
[[gnu::weak]] int openblas_get_num_threads(void);
[[gnu::weak]] void openblas_set_num_threads(int);
}

/// The threads that compute matrices on the host.
namespace descent::detail {

/// While one exists, OpenBLAS computes each product by the calling thread alone. Other libraries are not changed.
class one_blas_thread {
 public:
  static bool possible() { return openblas_get_num_threads && openblas_set_num_threads; }
  one_blas_thread() {
    if (!possible()) return;
    std::lock_guard const lock(mutex_);
    if (count_++ == 0) before_ = openblas_get_num_threads(), openblas_set_num_threads(1);
  }
  ~one_blas_thread() {
    if (!possible()) return;
    std::lock_guard const lock(mutex_);
    if (--count_ == 0) openblas_set_num_threads(before_);
  }
  one_blas_thread(one_blas_thread const&) = delete;

 private:
  static inline std::mutex mutex_;
  static inline int count_ = 0, before_ = 0;  // several threads may step at once
};

template <class Backend> struct system_of_backend { using type = default_system; };
template <class System> struct system_of_backend<host<System>> { using type = System; };
/// The system of a policy list's backend, which may be void.
template <class Backend> using system_of = typename system_of_backend<Backend>::type;

/// Whether a loop can have all of a system's threads.
template <class System>
inline constexpr bool has_team = requires(loop_body f) { System::in_team(std::int64_t{}, f); };

/// The number of threads that may compute a matrix of their own at the same time.
template <class System> int matrix_team() {
#if defined(_OPENMP)
  if (has_team<System> && one_blas_thread::possible()) return omp_get_max_threads();
#endif
  return 1;
}

}  // namespace descent::detail
