// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/version.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

/// Empty without the policy matrices; otherwise a compile error if matrices/host.hpp or matrices/cuda.cuh is missing.
namespace descent::detail {

struct no_matrix_terms {};
struct no_matrices {
  template <class... Ts> void add_to(Ts const&...) {}
  template <class... Ts> void start(Ts const&...) {}
  template <class... Ts> void step(Ts const&...) {}
  template <class... Ts> bool commit(Ts const&...) { return false; }
  template <class... Ts> std::vector<std::string> facts(Ts const&...) const { return {}; }
  template <class... Ts> void broadcast(Ts const&...) {}
  template <class... Ts> std::uint64_t hash(Ts const&...) const { return 0; }
  template <class... Ts> no_matrix_terms terms_in(Ts const&...) { return {}; }
};

template <class Plan, class System> class host_matrices : public no_matrices {
  static_assert(!Plan::has_matrices,
                "matrices on the host: #include <descent/matrices/host.hpp>, and link a BLAS: -lopenblas");
};
template <class Plan> class cuda_matrices : public no_matrices {
  static_assert(!Plan::has_matrices,
                "matrices on CUDA: #include <descent/matrices/cuda.cuh>, and link cuBLAS: -lcublas");
};

/// The part of an engine for matrices, or no_matrices.
template <class Plan, class Part> using matrices_of = std::conditional_t<Plan::has_matrices, Part, no_matrices>;

}  // namespace descent::detail
