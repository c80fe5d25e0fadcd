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

/// The newest control blocks, in pinned memory. Each call writes its own, and says that the one before is complete: that
/// kernel has ended. Three slots leave the host the time of a whole step to copy one.
struct late_report {
  control_block slot[3];
  std::int64_t complete = 0;
};

/// What only some policies have, so that the kernels of the others are what they were without.
template <class Plan, bool = Plan::has_extras || Plan::has_step_terms> struct extra_view {};
template <class Plan> struct extra_view<Plan, true> {
  extra_buffers<Plan> buffers;
  step_terms_of<Plan> const* step_terms;
};

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
  double* partial;            // [row][chunk]: the norm's rows if measured, then the rule's sums
  double* totals;             // [row][tensor], the same rows
  extra_view<Plan> extra;

  template <class Typed = Plan> __device__ buffers<Typed> of(std::int32_t tensor) const {
    auto const t = tensors[tensor];
    buffers<Typed> x{static_cast<typename Typed::value*>(t.value), static_cast<typename Typed::gradient*>(t.gradient), nullptr, {}, {}};
    if constexpr (Typed::has_master) x.exact = master + t.arena;
    else x.exact = x.value;
    if constexpr (Plan::has_extras) x.extra = extra.buffers.template from<Typed>(t.arena);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((x.slot[I] = has_optional_state<rule> && !slot[I]
                        ? nullptr
                        : static_cast<typename Plan::template slot<I>*>(slot[I]) + t.arena),
       ...);
    }(typename Plan::every_slot{});
    return x;
  }

  /// f<Typed>(buffers) for the tensor's types.
  template <class F> __device__ void with(std::int32_t tensor, F const& f) const {
    if constexpr (Plan::pairs == 1) f(of(tensor));
    else with_types<Plan>(tensors[tensor].types, [&]<class Typed>() { f(of<Typed>(tensor)); });
  }
};

/// What only the read-only pass and the control block need.
template <class Plan> struct control_view {
  typename Plan::policies policies;
  step_terms_of<Plan>*step_terms, *pending_step;
  double* factors;  // of groups or tensors that are clipped by themselves
  loss_scale_state const* scale;
  late_report* late;  // in host memory
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

/// Body on all packets; of groups that are not frozen, if so wanted.
template <class Plan, class Body> struct all_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  Body body;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M> __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      body.template operator()<Typed, typename Plan::real, M>(x, i, extent{M, true});
    });
  }
};

/// Changes gradients with the loss scale at hand: body(scale) does a packet.
template <class Plan, class Body> struct scaled_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  loss_scale_state const* scale;
  Body body;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M> __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    using real = typename Plan::real;
    real const factor = v.control->unscaled ? real(1) : real(scale->scale);
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      body(factor).template operator()<Typed, real, M>(x, i, extent{M, true});
    });
  }
};
struct unscale_body {
  template <class Real> __device__ auto operator()(Real scale) const { return multiply_all<Real>{1 / scale}; }
};
template <class F> struct transform_body {
  F f;
  template <class Real> __device__ auto operator()(Real scale) const { return transform_all<F, Real>{f, scale, 1 / scale}; }
};

template <class Plan> struct update_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  __device__ auto const& unit_of(std::int32_t tensor) const {
    return v.units[Plan::unit_per_tensor ? tensor : v.tensors[tensor].group];
  }
  __device__ bool wants(std::int32_t tensor) const {
    if (Plan::may_skip && !v.control->applied)
      return Plan::zeroes && !v.control->waiting && !v.groups[v.tensors[tensor].group].frozen;
    return !unit_of(tensor).frozen;
  }
  template <int M> __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    using real = typename Plan::real;
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      if constexpr (Plan::zeroes && Plan::may_skip)
        if (!v.control->applied) return zero_packet<Typed, real, M>(x, i, {M, true});
      auto const& unit = unit_of(tensor);
      if constexpr (Plan::has_step_terms)
        update_packet<Typed, real, M>(x, i, {M, true}, unit.factor, unit.terms, *v.extra.step_terms);
      else update_packet<Typed, real, M>(x, i, {M, true}, unit.factor, unit.terms);
    });
  }
};

// ---- over chunks: one block each, one partial for each sum -----------------------------------------------------------

template <class Plan, measure What>
__global__ __launch_bounds__(chunk_threads) void measure_chunks(device_view<Plan> v, control_view<Plan> w,
                                                                step_call call) {
  using real = typename Plan::real;
  using reduce = cub::BlockReduce<double, chunk_threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  __shared__ typename reduce::TempStorage shared[measured<Plan, What>];
  if (What == measure::sums ? !v.control->applied : !completes<Plan>(*v.control, w.policies, call)) return;

  std::int64_t const chunk = blockIdx.x;
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  auto const& t = v.tensors[tensor];
  auto const [begin, size] = span_of(chunk, t);
  double total[measured<Plan, What>][4] = {};
  if (!v.groups[t.group].frozen) {
    typename Plan::rule::template terms<real> k{};
    step_terms_of<Plan> step{};
    real factor = 1;
    if constexpr (What != measure::norm) {
      k = v.pending[t.group].terms;
      if constexpr (Plan::has_step_terms) step = *w.pending_step;
      if constexpr (What == measure::norm_and_sums) factor = real(inverse_of<Plan>(*v.control, *w.scale, call));
      else if constexpr (Plan::clip_over == scope::model) factor = real(v.control->factor);
      else factor = real(w.factors[Plan::clip_over == scope::tensor ? tensor : t.group]);
    }
    v.with(tensor, [&, begin = begin, size = size]<class Typed>(buffers<Typed> const& x) {
      for (int q = int(threadIdx.x); q < chunk_packets; q += chunk_threads) {
        int const first = q * int(packet_size), left = size - first;
        if (left <= 0) break;
        extent const e = left < packet_size ? extent{left, false} : extent{int(packet_size), t.aligned};
        measure_packet<Typed, What, real>(total, x, begin + first, e, factor, k, step);
      }
    });
  }
  constexpr int first = What == measure::sums ? Plan::norm_rows : 0;
  for (int c = 0; c < measured<Plan, What>; ++c) {
    double sum;
    if (first_is_largest<Plan, What> && c == 0) sum = reduce(shared[c]).Reduce(fold<true>(total[c]), combine<true>{});
    else sum = reduce(shared[c]).Sum(fold(total[c]));
    if (threadIdx.x == 0) v.partial[(first + c) * v.chunk_count + chunk] = sum;
  }
}

// ---- the control block: one block ------------------------------------------------------------------------------------

template <class Plan> class controller {
  using reduce = cub::BlockReduce<double, total_threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  using reduce_warp = cub::WarpReduce<double>;

 public:
  __device__ controller(device_view<Plan> const& v, control_view<Plan> const& w) : v(v), w(w), policies(w.policies) {}

  /// decide(), the factors of what is clipped by itself, rescale(): true when the step goes on.
  __device__ bool decide(step_call const& call) const {
    norm_totals totals;
    if (Plan::measures && completes<Plan>(*v.control, policies, call))
      totals = norm_totals_from<Plan>([&](int i) { return total(i); });
    if (threadIdx.x == 0) detail::decide<Plan>(*v.control, v.groups[0].rule, policies, *w.scale, totals, call);
    __syncthreads();
    bool const applied = !Plan::may_skip || v.control->applied;
    if constexpr (Plan::clip_over != scope::model)
      if (applied) find_factors();
    if constexpr (Plan::measures)
      if (!applied && !v.control->waiting) find_bad_chunk();
    if (threadIdx.x == 0) {
      rescale<Plan>(*v.control, policies);
      write_late_report();
    }
    return applied;
  }

  __device__ void find_terms() const {
    std::int64_t const t = v.control->step;
    __shared__ double totals[Plan::sum_count + 1];
    if constexpr (Plan::has_step_terms)
      if (threadIdx.x == 0) *w.step_terms = find_step_terms<Plan>(policies, t);
    if constexpr (Plan::sums_per_tensor) add_tensors(Plan::norm_rows, Plan::norm_rows + int(Plan::sum_count));
    else if constexpr (Plan::sums) {
      for (int c = 0; c < int(Plan::sum_count); ++c) {
        double const sum = total(Plan::norm_rows + c);
        if (threadIdx.x == 0) totals[c] = sum;
      }
      __syncthreads();
    }
    int const count = Plan::unit_per_tensor ? v.tensor_count : v.group_count;
    for (int u = int(threadIdx.x); u < count; u += total_threads) {
      int const g = Plan::unit_per_tensor ? v.tensors[u].group : u;
      double factor = v.control->factor;
      if constexpr (Plan::clip_over != scope::model) factor = w.factors[Plan::clip_over == scope::tensor ? u : g];
      if constexpr (Plan::sums_per_tensor)
        v.units[u] = terms_of<Plan>(v.groups[g], policies, t, factor, v.totals + std::int64_t(Plan::norm_rows) * v.tensor_count + u,
                                    v.tensor_count, v.memories[u]);
      else if constexpr (Plan::sums) v.units[u] = terms_of<Plan>(v.groups[g], policies, t, factor, totals, 1, v.memories[u]);
      else v.units[u] = terms_of<Plan>(v.groups[g], policies, t, factor);
    }
  }

  /// What the sums of the next step need.
  __device__ void prepare() const {
    std::int64_t const t = v.control->step + 1;
    if constexpr (Plan::has_step_terms)
      if (threadIdx.x == 0) *w.pending_step = find_step_terms<Plan>(policies, t);
    for (int g = int(threadIdx.x); g < v.group_count; g += total_threads)
      v.pending[g] = terms_of<Plan>(v.groups[g], policies, t, 1);
  }

 private:
  __device__ static constexpr bool largest(int row) { return Plan::norm_of == norm::inf && row == 0; }

  /// A row's total over all chunks, for thread 0.
  __device__ double total(int row) const {
    __shared__ typename reduce::TempStorage shared;
    double const* x = v.partial + row * v.chunk_count;
    double sum = 0;
    if (largest(row)) {
      for (std::int64_t c = threadIdx.x; c < v.chunk_count; c += total_threads) sum = larger(sum, x[c]);
      sum = reduce(shared).Reduce(sum, combine<true>{});
    } else {
      for (std::int64_t c = threadIdx.x; c < v.chunk_count; c += total_threads) sum += x[c];
      sum = reduce(shared).Sum(sum);
    }
    __syncthreads();
    return sum;
  }

  /// A row's total of count values by the calling warp, for its first lane.
  template <class Value> __device__ double warp_total(int row, std::int64_t count, Value const& value) const {
    __shared__ typename reduce_warp::TempStorage shared[total_threads / warp];
    int const lane = int(threadIdx.x) % warp, team = int(threadIdx.x) / warp;
    double sum = 0;
    if (largest(row)) {
      for (std::int64_t i = lane; i < count; i += warp) sum = larger(sum, value(i));
      sum = reduce_warp(shared[team]).Reduce(sum, combine<true>{});
    } else {
      for (std::int64_t i = lane; i < count; i += warp) sum += value(i);
      sum = reduce_warp(shared[team]).Sum(sum);
    }
    __syncwarp();
    return sum;
  }

  /// The totals of rows [first, last) of each tensor.
  __device__ void add_tensors(int first, int last) const {
    for (int u = int(threadIdx.x) / warp; u < v.tensor_count; u += total_threads / warp) {
      std::int64_t const chunk = v.tensors[u].first_chunk, count = chunks_of(v.tensors[u].count);
      for (int row = first; row < last; ++row) {
        double const* x = v.partial + row * v.chunk_count + chunk;
        double const sum = warp_total(row, count, [&](std::int64_t i) { return x[i]; });
        if (threadIdx.x % warp == 0) v.totals[std::int64_t(row) * v.tensor_count + u] = sum;
      }
    }
    __syncthreads();
  }

  __device__ void find_factors() const {
    __shared__ typename reduce::TempStorage shared;
    add_tensors(0, Plan::norm_rows);
    double const inverse = v.control->factor;
    double smallest = 1;
    auto const total_of = [&](int row, int t) { return v.totals[std::int64_t(row) * v.tensor_count + t]; };
    auto const keep = [&](int u, norm_totals const& x) {
      double const factor = clip_factor<Plan>(policies, x, inverse);
      w.factors[u] = inverse * factor;
      smallest = min(smallest, factor);
    };
    if constexpr (Plan::clip_over == scope::tensor) {
      for (int u = int(threadIdx.x); u < v.tensor_count; u += total_threads)
        keep(u, norm_totals_from<Plan>([&](int row) { return total_of(row, u); }));
    } else {
      for (int g = int(threadIdx.x) / warp; g < v.group_count; g += total_threads / warp) {
        auto const x = norm_totals_from<Plan>([&](int row) {
          return warp_total(row, v.tensor_count,
                            [&](std::int64_t t) { return v.tensors[t].group == g ? total_of(row, int(t)) : 0; });
        });
        if (threadIdx.x % warp == 0) keep(g, x);
      }
    }
    smallest = reduce(shared).Reduce(smallest, [](double a, double b) { return min(a, b); });
    if (threadIdx.x == 0) v.control->clip = smallest;
    __syncthreads();
  }

  __device__ void find_bad_chunk() const {
    using reduce_index = cub::BlockReduce<long long, total_threads>;
    __shared__ typename reduce_index::TempStorage shared;
    long long bad = v.chunk_count;
    for (long long c = threadIdx.x; c < bad; c += total_threads)
      if (!norm_totals_from<Plan>([&](int row) { return v.partial[row * v.chunk_count + c]; }).finite()) bad = c;
    bad = reduce_index(shared).Reduce(bad, [](long long a, long long b) { return a < b ? a : b; });
    if (threadIdx.x == 0) v.control->bad_chunk = bad < v.chunk_count ? bad : -1;  // -1: only their sum is not finite
  }

  __device__ void write_late_report() const {
    control_block& slot = w.late->slot[v.control->calls % 3];
    slot = *v.control;
    slot.scale = *w.scale;
    w.late->complete = v.control->calls - 1;
  }

  device_view<Plan> const& v;
  control_view<Plan> const& w;
  typename Plan::policies const& policies;
};

template <class Plan>
__global__ __launch_bounds__(total_threads) void decide_step(device_view<Plan> v, control_view<Plan> w,
                                                             step_call call) {
  controller<Plan>(v, w).decide(call);
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void find_all_terms(device_view<Plan> v, control_view<Plan> w) {
  if (!v.control->applied) return;
  controller<Plan> const c(v, w);
  c.find_terms();
  if constexpr (Plan::sums) c.prepare();
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void control_step(device_view<Plan> v, control_view<Plan> w,
                                                              step_call call) {
  controller<Plan> const c(v, w);
  if (!c.decide(call)) return;
  c.find_terms();
  if constexpr (Plan::sums) c.prepare();
}

template <class Plan> __global__ void mark_unscaled(device_view<Plan> v) { v.control->unscaled = true; }

template <class Policy> __global__ void update_scale(shared_scale* s, Policy policy) { update_shared(*s, policy); }

/// As many groups as fit into a kernel's parameters.
template <class Rule> struct group_batch {
  static constexpr int capacity = int(2048 / sizeof(group_entry<Rule>)) > 0 ? int(2048 / sizeof(group_entry<Rule>)) : 1;
  int first, count;
  group_entry<Rule> entry[capacity];
};

template <class Plan>
__global__ __launch_bounds__(total_threads) void set_step_groups(device_view<Plan> v, control_view<Plan> w,
                                                                 group_batch<typename Plan::rule> batch) {
  for (int g = int(threadIdx.x); g < batch.count; g += total_threads) v.groups[batch.first + g] = batch.entry[g];
  __syncthreads();
  if constexpr (Plan::sums) controller<Plan>(v, w).prepare();
}

}  // namespace descent::detail
