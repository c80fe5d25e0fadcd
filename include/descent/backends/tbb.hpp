// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/thrust.hpp>

#include <thrust/system/tbb/execution_policy.h>

namespace descent {

/// oneTBB's threads, through Thrust, for host<tbb>{}. Link with -ltbb. One thread in a child of fork() whose parent had
/// a team.
struct tbb {
  /// The name in explain().
  static constexpr char const* name() { return "Thrust tbb"; }
  static void each(std::int64_t n, detail::loop_body f) {
    if (detail::has_lost_team()) return cpp::each(n, f);
    detail::each_through(thrust::tbb::par, n, f);
  }
};
/// The same for an execution policy.
inline host<tbb> on(decltype(thrust::tbb::par) const&) { return {}; }

}  // namespace descent
