// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/host.hpp>

#include <thrust/system/tbb/execution_policy.h>

namespace descent {

/// oneTBB's threads, for host<tbb>{}. Link with -ltbb.
struct tbb {
  static constexpr char const* name() { return "tbb"; }
  template <class F> static void each(std::int64_t n, F const& f) {
    thrust::for_each_n(thrust::tbb::par, thrust::counting_iterator<std::int64_t>(0), n, f);
  }
};

}  // namespace descent
