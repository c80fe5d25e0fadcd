// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/kernels.cuh>
#include <descent/matrices/detail/groups.hpp>
#include <descent/engine/step/prints.hpp>
#include <descent/matrices/detail/thread_team.hpp>

/// The kernels of the matrix rule.
namespace descent::detail {

/// Open if the step is applied and the group not frozen, or if null. Kernels that change more than scratch check it.
struct matrix_gate {
  bool const *applied = nullptr, *frozen = nullptr;
  __device__ bool open() const { return !applied || (*applied && !*frozen); }
};

/// What find_matrix_terms() needs of the matrix rule.
template <class Plan> struct matrix_view {
  std::int32_t const* tensor;  // of each matrix
  std::int64_t const* columns;
  int count;
  typename Plan::matrix_rule* rules;  // of each group
  matrix_unit<Plan>* units;
};

template <class Plan>
__global__ __launch_bounds__(total_threads) void find_matrix_terms(device_view<Plan> v, control_view<Plan> w,
                                                                   matrix_view<Plan> m) {
  if (!v.control->applied) return;
  for (int u = int(threadIdx.x); u < m.count; u += total_threads) {
    auto const& t = v.tensors[m.tensor[u]];
    double factor = v.control->factor;
    if constexpr (Plan::clip_over != scope::model)
      factor = w.factors[Plan::clip_over == scope::tensor ? v.number_of(m.tensor[u]) : t.group];
    m.units[u] =
        matrix_terms_of<Plan>(m.rules[t.group], w.policies, v.control->step, {t.count / m.columns[u], m.columns[u]},
                              factor, v.groups[t.group].frozen, t.group, rates_of(*v.control));
  }
}

template <class Rule> struct matrix_rule_batch {
  static constexpr int capacity = sizeof(Rule) <= 1024 ? int(2048 / sizeof(Rule)) : 1;
  int first, count;
  Rule rule[std::size_t(capacity)];
};
template <class Rule>
__global__ __launch_bounds__(total_threads) void set_matrix_rules(Rule* rules, matrix_rule_batch<Rule> batch) {
  for (int i = int(threadIdx.x); i < batch.count; i += total_threads) rules[batch.first + i] = batch.rule[i];
}

template <class Plan> inline constexpr int matrix_blocks = 1;

template <class Plan> struct matrix_start_packets {
  static constexpr int blocks = matrix_blocks<Plan>;
  static constexpr bool all_chunks = true;
  device_view<Plan> v;
  matrix_states<Plan> states;
  typename Plan::matrix_rule const* rules;
  std::int64_t first_chunk;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      using plan = front_plan<Typed>;
      start_packet<plan, typename Plan::real, M>(matrix_buffers<plan>(x, x.gradient, states), i, {M, true},
                                                 rules[v.tensors[tensor].group]);
    });
  }
};

template <class Plan> struct front_packets {
  static constexpr int blocks = matrix_blocks<Plan>;
  static constexpr bool all_chunks = true;
  device_view<Plan> v;
  matrix_states<Plan> states;
  matrix_unit<Plan> const* unit;
  matrix_inputs<Plan> inputs;
  std::int64_t first_chunk;
  __device__ bool wants(std::int32_t tensor) const {
    if (v.groups[v.tensors[tensor].group].frozen) return false;
    return v.control->applied || (Plan::zeroes && !v.control->waiting);
  }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    using real = typename Plan::real;
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      if constexpr (Plan::zeroes)
        if (!v.control->applied) return zero_packet<Typed, real, M>(x, i, {M, true});
      using plan = front_plan<Typed>;
      auto const y = matrix_buffers<plan>(x, x.gradient, states);
      if constexpr (Plan::has_step_terms)
        front_packet<plan, real, M>(y, i, {M, true}, unit->factor, unit->terms, *v.extra.step_terms, inputs.at);
      else front_packet<plan, real, M>(y, i, {M, true}, unit->factor, unit->terms, {}, inputs.at);
    });
  }
};

template <class Plan> struct back_packets {
  static constexpr int blocks = matrix_blocks<Plan>;
  static constexpr bool all_chunks = true;
  device_view<Plan> v;
  matrix_states<Plan> states;
  matrix_unit<Plan> const* unit;
  typename Plan::real* direction;
  std::int64_t first_chunk;
  __device__ bool wants(std::int32_t tensor) const {
    return v.control->applied && !v.groups[v.tensors[tensor].group].frozen;
  }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    using real = typename Plan::real;
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      using plan = back_plan<Typed>;
      auto const y = matrix_buffers<plan>(x, direction, states);
      if constexpr (Plan::has_step_terms)
        update_packet<plan, real, M>(y, i, {M, true}, real(1), unit->terms, *v.extra.step_terms);
      else update_packet<plan, real, M>(y, i, {M, true}, real(1), unit->terms);
    });
  }
};

/// print <- the fingerprint of a buffer. It starts at 0.
template <class T>
__global__ __launch_bounds__(chunk_threads) void print_elements(T const* x, std::int64_t n, unsigned long long* print) {
  std::int64_t const begin = std::int64_t(blockIdx.x) * chunk_size;
  unsigned long long sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < n && i < begin + chunk_size; i += chunk_threads)
    sum += print_of(bits_at(x, i, sizeof *x), i);
  if (sum) atomicAdd(print, sum);
}

// ---- over matrices of one shape: host_work's functions, adding in the same order ------------------------------------

/// A functor for each matrix, as a kernel's parameter. Block y works on matrix y.
template <class F> struct functors {
  alignas(F) std::byte of[sizeof(F) * std::size_t(most_at_once)];
  DESCENT_HD F const& operator[](unsigned i) const { return reinterpret_cast<F const*>(of)[i]; }
  __device__ F const& operator()() const { return (*this)[blockIdx.y]; }
};

inline constexpr int elements_of_block = 4 * chunk_threads;  // elements per block in each()

template <class F>
__global__ __launch_bounds__(chunk_threads) void matrix_each(matrix_gate gate, std::int64_t n,
                                                             __grid_constant__ functors<F> const all) {
  if (!gate.open()) return;
  F const f = all();
  std::int64_t const begin = std::int64_t(blockIdx.x) * elements_of_block;
  for (std::int64_t i = begin + threadIdx.x; i < n && i < begin + elements_of_block; i += chunk_threads) f(i);
}

template <class F>
__global__ __launch_bounds__(chunk_threads) void matrix_teams(matrix_gate gate,
                                                              __grid_constant__ functors<F> const all) {
  __shared__ double sum[thread_team::capacity];
  if (!gate.open()) return;
  F const f = all();
  f(thread_team{sum}, std::int64_t(blockIdx.x));
}

/// Each block processes a part of one row.
template <class F>
__global__ __launch_bounds__(chunk_threads) void matrix_elements(matrix_gate gate, std::int64_t columns, unsigned parts,
                                                                 __grid_constant__ functors<F> const all) {
  if (!gate.open()) return;
  F const f = all();
  unsigned const row = blockIdx.x / parts;
  std::int64_t const begin = std::int64_t(blockIdx.x % parts) * elements_of_block;
  for (std::int64_t j = begin + threadIdx.x; j < columns && j < begin + elements_of_block; j += chunk_threads)
    f(row * columns + j, row, j);
}

template <int Threads, bool Largest> __device__ double block_total(double sum) {
  __shared__ double of_warps[Threads / warp];
  return reduce_block(of_warps, sum, combine<Largest>{});
}

/// Partial results of the matrices, `stride` apart.
struct matrix_partials_view {
  double* begin;
  std::int64_t stride;
  __device__ double* operator()() const { return begin + blockIdx.y * stride; }
};

template <class F>
__global__ __launch_bounds__(chunk_threads) void matrix_partials(matrix_gate gate, std::int64_t n,
                                                                 __grid_constant__ functors<F> const all,
                                                                 matrix_partials_view partials) {
  if (!gate.open()) return;
  F const f = all();
  std::int64_t const begin = std::int64_t(blockIdx.x) * chunk_size;
  double sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < n && i < begin + chunk_size; i += chunk_threads) sum += f(i);
  sum = block_total<chunk_threads, false>(sum);
  if (threadIdx.x == 0) partials()[blockIdx.x] = sum;
}
template <int = 0>
__global__ __launch_bounds__(total_threads) void add_matrix_partials(matrix_gate gate, std::int64_t n,
                                                                     matrix_partials_view partials,
                                                                     __grid_constant__ functors<double*> const to) {
  if (!gate.open()) return;
  double sum = 0;
  for (std::int64_t c = threadIdx.x; c < n; c += total_threads) sum += partials()[c];
  sum = block_total<total_threads, false>(sum);
  if (threadIdx.x == 0) *to() = sum;
}

template <bool Largest, class F, class Store>
__global__ __launch_bounds__(chunk_threads) void matrix_rows(matrix_gate gate, std::int64_t columns,
                                                             __grid_constant__ functors<F> const all,
                                                             __grid_constant__ functors<Store> const store) {
  if (!gate.open()) return;
  F const f = all();
  std::int64_t const row = blockIdx.x;
  double sum = 0;
  for (std::int64_t j = threadIdx.x; j < columns; j += chunk_threads)
    sum = combine<Largest>{}(sum, f(row * columns + j, row, j));
  sum = block_total<chunk_threads, Largest>(sum);
  if (threadIdx.x == 0) store()(row, sum);
}

/// Each block processes 256 columns of one segment of rows.
template <bool Largest, class F>
__global__ __launch_bounds__(chunk_threads) void matrix_segments(matrix_gate gate, std::int64_t rows,
                                                                 std::int64_t columns,
                                                                 __grid_constant__ functors<F> const all,
                                                                 matrix_partials_view partials) {
  if (!gate.open()) return;
  F const f = all();
  std::int64_t const blocks = (columns + chunk_threads - 1) / chunk_threads, segment = blockIdx.x / blocks,
                     j = blockIdx.x % blocks * chunk_threads + threadIdx.x;
  if (j >= columns) return;
  double sum = 0;
  for (std::int64_t i = segment * segment_rows; i < rows && i < (segment + 1) * segment_rows; ++i)
    sum = combine<Largest>{}(sum, f(i * columns + j, i, j));
  partials()[segment * columns + j] = sum;
}
template <bool Largest, class Store>
__global__ __launch_bounds__(chunk_threads) void matrix_columns(matrix_gate gate, std::int64_t segments,
                                                                std::int64_t columns, matrix_partials_view partials,
                                                                __grid_constant__ functors<Store> const store) {
  if (!gate.open()) return;
  std::int64_t const j = std::int64_t(blockIdx.x) * chunk_threads + threadIdx.x;
  if (j >= columns) return;
  double sum = 0;
  for (std::int64_t s = 0; s < segments; ++s) sum = combine<Largest>{}(sum, partials()[s * columns + j]);
  store()(j, sum);
}

}  // namespace descent::detail
