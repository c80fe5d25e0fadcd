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

/// Values, gradients and states in host memory; the step runs on the threads of its system: `host{}` is omp where the
/// compiler has OpenMP switched on and cpp otherwise; backends/thrust.hpp and backends/tbb.hpp have more. The results
/// have the same bits for any system and any number of threads. step() returns when the step is done.
template <class System = default_system> struct host {
  using policy_kind = kind::backend;
  template <class Plan> using engine = detail::host_engine<Plan, System>;
  template <class Policy> using scaler = detail::host_scaler<Policy>;
  static std::string name() { return std::string("host, ") + System::name(); }
};

}  // namespace descent
