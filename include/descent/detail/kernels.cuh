// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/control.hpp>
#include <descent/detail/packet.hpp>
#include <descent/detail/reduce.hpp>

#include <cub/block/block_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>

/// The device's side of a step: what kernels see, and the kernels.
namespace descent::detail {

/// Everything in device memory, by value to every kernel.
template <class Plan> struct device_view {
  using rule = typename Plan::rule;
  using real = typename Plan::real;

  tensor_record<typename Plan::value, typename Plan::gradient> const* tensors;
  std::int32_t const* tensor_of_chunk;
  std::int64_t chunk_count;
  std::int32_t tensor_count, group_count;
  typename Plan::exact* master;
  void* slot[Plan::slots + 1];
  control_block* control;
  group_entry<rule>* groups;
  unit<rule, real>* units;    // terms of the update, for each group or tensor
  unit<rule, real>* pending;  // terms of the sums in the next step, for each group
  memory_of<rule>* memories;  // for each unit
  double* partial;            // [row][chunk]: squared norm if measured, then the rule's sums
  double* totals;             // [sum][tensor]

  __device__ buffers<Plan> of(std::int32_t tensor) const {
    auto const t = tensors[tensor];
    buffers<Plan> x{t.value, t.gradient, nullptr, {}};
    if constexpr (Plan::has_master) x.exact = master + t.arena;
    else x.exact = t.value;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((x.slot[I] = has_optional_state<rule> && !slot[I]
                        ? nullptr
                        : static_cast<typename Plan::template slot<I>*>(slot[I]) + t.arena),
       ...);
    }(typename Plan::every_slot{});
    return x;
  }
};

// ---- over elements: one block for each chunk, one packet for each thread ---------------------------------------------

/// Two blocks on a multiprocessor leave 64 registers a thread: enough for two members of state in float. More of it, or
/// double, gets one block and 128 registers; either way enough loads are in flight to keep memory busy.
inline constexpr int packet_threads = int(chunk_packets);
template <class Plan>
inline constexpr int packet_blocks = std::is_same_v<typename Plan::real, double> || Plan::slots > 2 ? 1 : 2;

/// Calls body(tensor, first element, M) for whole packets of an aligned tensor, with M = 8. Elsewhere for single
/// elements, with M = 1: neighbours to neighbouring threads where a tensor is not aligned.
template <class Body> __global__ __launch_bounds__(packet_threads, Body::blocks) void each_packet(Body const body) {
  auto const& v = body.v;
  std::int64_t const chunk = blockIdx.x;
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  if (!body.wants(tensor)) return;
  auto const& t = v.tensors[tensor];
  auto const [begin, size] = span_of(chunk, t);
  int const thread = int(threadIdx.x);
  if (t.aligned) {
    int const first = thread * int(packet_size);
    if (first + int(packet_size) <= size) body(tensor, begin + first, std::integral_constant<int, packet_size>{});
    else for (int j = first; j < size; ++j) body(tensor, begin + j, std::integral_constant<int, 1>{});
  } else {
    for (int j = thread; j < size; j += packet_threads) body(tensor, begin + j, std::integral_constant<int, 1>{});
  }
}

template <class Plan> struct start_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M> __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    start_packet<Plan, typename Plan::real, M>(v.of(tensor), i, {M, true});
  }
};

template <class Plan> struct zero_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M> __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    float const zero[M] = {};
    write(v.tensors[tensor].gradient + i, zero, {M, true});
  }
};

template <class Plan> struct update_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  __device__ auto const& unit_of(std::int32_t tensor) const {
    return v.units[Plan::sums_per_tensor ? tensor : v.tensors[tensor].group];
  }
  __device__ bool wants(std::int32_t tensor) const {
    return !(Plan::measures && !v.control->applied) && !unit_of(tensor).frozen;
  }
  template <int M> __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    auto const& unit = unit_of(tensor);
    update_packet<Plan, typename Plan::real, M>(v.of(tensor), i, {M, true}, unit.factor, unit.terms);
  }
};

// ---- over chunks: one block each, one partial for each sum -----------------------------------------------------------

template <class Plan, measure What> __global__ __launch_bounds__(chunk_threads) void measure_chunks(device_view<Plan> v) {
  using real = typename Plan::real;
  using reduce = cub::BlockReduce<double, chunk_threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  __shared__ typename reduce::TempStorage shared[measured<Plan, What>];
  if (What == measure::sums && !v.control->applied) return;

  std::int64_t const chunk = blockIdx.x;
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  auto const& t = v.tensors[tensor];
  auto const [begin, size] = span_of(chunk, t);
  double total[measured<Plan, What>][4] = {};
  if (!v.groups[t.group].frozen) {
    typename Plan::rule::template terms<real> k{};
    if constexpr (What != measure::norm) k = v.pending[t.group].terms;
    real const factor = What == measure::sums ? real(v.control->factor) : real(1);
    buffers<Plan> const x = v.of(tensor);
    for (int q = int(threadIdx.x); q < chunk_packets; q += chunk_threads) {
      int const first = q * int(packet_size), left = size - first;
      if (left <= 0) break;
      extent const e = left < packet_size ? extent{left, false} : extent{int(packet_size), t.aligned};
      measure_packet<Plan, What, real>(total, x, begin + first, e, factor, k);
    }
  }
  constexpr int first = What == measure::sums ? 1 : 0;
  for (int c = 0; c < measured<Plan, What>; ++c) {
    double const sum = reduce(shared[c]).Sum(fold(total[c]));
    if (threadIdx.x == 0) v.partial[(first + c) * v.chunk_count + chunk] = sum;
  }
}

// ---- the control block: one block ------------------------------------------------------------------------------------

template <class Plan> class controller {
  using reduce = cub::BlockReduce<double, total_threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  using reduce_warp = cub::WarpReduce<double>;

 public:
  __device__ controller(device_view<Plan> const& v, typename Plan::policies const& policies) : v(v), policies(policies) {}

  /// decide(): true when the step goes on.
  __device__ bool decide() const {
    double squares = 0;
    if constexpr (Plan::measures) squares = total(v.partial);
    if (threadIdx.x == 0) detail::decide<Plan>(*v.control, v.groups[0].rule, policies, squares);
    __syncthreads();
    if (Plan::measures && !v.control->applied) {
      find_bad_chunk();
      return false;
    }
    return true;
  }

  __device__ void find_terms() const {
    std::int64_t const t = v.control->step;
    double const factor = v.control->factor;
    if constexpr (!Plan::sums) {
      for (int g = int(threadIdx.x); g < v.group_count; g += total_threads)
        v.units[g] = terms_of<Plan>(v.groups[g], policies, t, factor);
    } else if constexpr (Plan::sums_per_tensor) {
      add_tensors();
      for (int u = int(threadIdx.x); u < v.tensor_count; u += total_threads)
        v.units[u] = terms_of<Plan>(v.groups[v.tensors[u].group], policies, t, factor, v.totals + u, v.tensor_count, v.memories[u]);
    } else {
      __shared__ double totals[Plan::sum_count];
      for (int c = 0; c < int(Plan::sum_count); ++c) {
        double const sum = total(v.partial + (c + 1) * v.chunk_count);
        if (threadIdx.x == 0) totals[c] = sum;
      }
      __syncthreads();
      for (int g = int(threadIdx.x); g < v.group_count; g += total_threads)
        v.units[g] = terms_of<Plan>(v.groups[g], policies, t, factor, totals, 1, v.memories[g]);
    }
  }

  /// What the sums of the next step need.
  __device__ void prepare() const {
    for (int g = int(threadIdx.x); g < v.group_count; g += total_threads)
      v.pending[g] = terms_of<Plan>(v.groups[g], policies, v.control->step + 1, 1);
  }

 private:
  /// The sum over all chunks, for thread 0.
  __device__ double total(double const* x) const {
    __shared__ typename reduce::TempStorage shared;
    double sum = 0;
    for (std::int64_t c = threadIdx.x; c < v.chunk_count; c += total_threads) sum += x[c];
    sum = reduce(shared).Sum(sum);
    __syncthreads();
    return sum;
  }

  __device__ void add_tensors() const {
    __shared__ typename reduce_warp::TempStorage shared[total_threads / warp];
    int const lane = int(threadIdx.x) % warp, team = int(threadIdx.x) / warp;
    for (int u = team; u < v.tensor_count; u += total_threads / warp) {
      std::int64_t const first = v.tensors[u].first_chunk, count = chunks_of(v.tensors[u].count);
      for (int c = 0; c < int(Plan::sum_count); ++c) {
        double const* x = v.partial + (c + 1) * v.chunk_count + first;
        double sum = 0;
        for (std::int64_t i = lane; i < count; i += warp) sum += x[i];
        sum = reduce_warp(shared[team]).Sum(sum);
        if (lane == 0) v.totals[std::int64_t(c) * v.tensor_count + u] = sum;
        __syncwarp();
      }
    }
    __syncthreads();
  }

  __device__ void find_bad_chunk() const {
    using reduce_index = cub::BlockReduce<long long, total_threads>;
    __shared__ typename reduce_index::TempStorage shared;
    long long bad = v.chunk_count;
    for (long long c = threadIdx.x; c < bad; c += total_threads)
      if (v.partial[c] - v.partial[c] != 0) bad = c;
    bad = reduce_index(shared).Reduce(bad, [](long long a, long long b) { return a < b ? a : b; });
    if (threadIdx.x == 0) v.control->bad_chunk = bad < v.chunk_count ? bad : -1;  // -1: only their sum is not finite
  }

  device_view<Plan> const& v;
  typename Plan::policies const& policies;
};

template <class Plan>
__global__ __launch_bounds__(total_threads) void decide_step(device_view<Plan> v, typename Plan::policies policies) {
  controller<Plan>(v, policies).decide();
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void find_step_terms(device_view<Plan> v, typename Plan::policies policies) {
  if (!v.control->applied) return;
  controller<Plan> const c(v, policies);
  c.find_terms();
  if constexpr (Plan::sums) c.prepare();
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void control_step(device_view<Plan> v, typename Plan::policies policies) {
  controller<Plan> const c(v, policies);
  if (!c.decide()) return;
  c.find_terms();
  if constexpr (Plan::sums) c.prepare();
}

/// As many groups as fit into a kernel's parameters.
template <class Rule> struct group_batch {
  static constexpr int capacity = int(2048 / sizeof(group_entry<Rule>)) > 0 ? int(2048 / sizeof(group_entry<Rule>)) : 1;
  int first, count;
  group_entry<Rule> entry[capacity];
};

template <class Plan>
__global__ __launch_bounds__(total_threads) void set_step_groups(device_view<Plan> v, typename Plan::policies policies,
                                                                 group_batch<typename Plan::rule> batch) {
  for (int g = int(threadIdx.x); g < batch.count; g += total_threads) v.groups[batch.first + g] = batch.entry[g];
  __syncthreads();
  if constexpr (Plan::sums) controller<Plan>(v, policies).prepare();
}

}  // namespace descent::detail
