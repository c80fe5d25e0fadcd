// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/systems.hpp>
#include <descent/core/policy.hpp>

#include <string>

namespace descent {

namespace detail {

template <class Plan, class System> class host_engine;
template <class Policy> class host_scaler;

}  // namespace detail

/// Values, gradients and states are in host memory. The step runs on the threads of its system: `host{}` is omp if the
/// compiler has OpenMP switched on, and cpp otherwise; backends/thrust.hpp and backends/tbb.hpp have more. Results have
/// the same bits for any system and any number of threads. step() returns when the step is done.
template <class System = default_system> struct host {
  using policy_kind = kind::backend;
  template <class Plan> using engine = detail::host_engine<Plan, System>;
  template <class Policy> using scaler = detail::host_scaler<Policy>;
  /// The name in explain().
  static std::string name() { return std::string("host, ") + System::name(); }
};

}  // namespace descent
