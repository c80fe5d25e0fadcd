// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/cuda/block_reduce.cuh>
#include <descent/detail/cuda/device_view.cuh>

/// The control block's kernels: one block each.
namespace descent::detail {

template <class Plan> class controller {
 public:
  __device__ controller(device_view<Plan> const& v, control_view<Plan> const& w) : v(v), w(w), policies(w.policies) {}

  /// decide(), the factors of what is clipped by itself, rescale(): whether the step goes on so far.
  __device__ bool decide(step_call const& call) const {
    norm_totals totals;
    bool const complete = completes<Plan>(*v.control, policies, call);
    if (threadIdx.x == 0) w.late->complete_until(v.control->calls);
    __syncthreads();
    if (Plan::measures && complete) totals = norm_totals_from<Plan>([&](int i) { return total(i); });
    if (threadIdx.x == 0) detail::decide<Plan>(*v.control, policies, *w.scale, totals, call);
    __syncthreads();
    bool const applied = !Plan::may_skip || v.control->applied;
    if constexpr (Plan::clip_over != scope::model)
      if (applied) find_factors();
    if constexpr (Plan::measures)
      if (!applied && !v.control->waiting && v.control->fault.what == term_fault::none) find_bad_chunk();
    if (threadIdx.x == 0) rescale<Plan>(*v.control, policies);
    return applied;
  }

  /// The terms of the next update, and advance() or skip(): whether the step goes on. Memories change with advance().
  __device__ bool find_terms() const {
    std::int64_t const t = v.control->step + 1;
    rate_change const rates = rates_of(*v.control);
    bool sound = true;
    __shared__ double totals[Plan::sum_count + 1];
    if constexpr (Plan::has_step_terms) {
      if (threadIdx.x == 0) {
        auto const k = find_step_terms<Plan>(v.groups[0].rule, policies, t);
        sound = is_sound(k);
        *w.step_terms = k;
      }
    }
    if constexpr (Plan::sums_per_tensor) add_tensors(Plan::norm_sums, Plan::norm_sums + int(Plan::sum_count));
    else if constexpr (Plan::sums) {
      for (int c = 0; c < int(Plan::sum_count); ++c) {
        double const sum = total(Plan::norm_sums + c);
        if (threadIdx.x == 0) totals[c] = sum;
      }
      __syncthreads();
    }
    if constexpr (Plan::per_row_step)
      for (int g = int(threadIdx.x); g < v.group_count; g += total_threads)
        v.extra.rules[g] = scheduled(v.groups[g].rule, policies, t - 1, g, rates);
    int const count = Plan::unit_per_tensor ? v.tensor_count : v.group_count;
    for (int u = int(threadIdx.x); u < count; u += total_threads) {
      int const g = Plan::unit_per_tensor ? v.tensors[u].group : u;
      double factor = v.control->factor;
      if constexpr (Plan::clip_over != scope::model) factor = w.factors[Plan::clip_over == scope::tensor ? u : g];
      if constexpr (has_memory<typename Plan::rule>) w.next_memories[u] = v.memories[u];
      double const* of_unit = totals;
      std::int64_t stride = 1;
      if constexpr (Plan::sums_per_tensor)
        of_unit = v.totals + std::int64_t(Plan::norm_sums) * v.tensor_count + u, stride = v.tensor_count;
      unit_terms_of<Plan> unit;
      if constexpr (Plan::sums)
        unit = terms_of<Plan>(v.groups[g], policies, t, factor, of_unit, stride, w.next_memories, u, rates);
      else unit = terms_of<Plan>(v.groups[g], policies, t, factor, w.next_memories, u, rates);
      if (!is_sound(unit) && is_idle<Plan>(has_elements(u), of_unit, stride)) {
        unit = {{}, 0, true};
        if constexpr (has_memory<typename Plan::rule>) w.next_memories[u] = v.memories[u];
      }
      v.units[u] = unit;
      sound = sound && is_sound(unit);
    }
    if constexpr (Plan::sums)
      for (int u = int(threadIdx.x); u < sum_terms_count(); u += total_threads)
        sound = sound && is_sound(v.sum_terms[u]);
    if constexpr (Plan::has_matrices)
      for (int u = int(threadIdx.x); u < w.matrices.count; u += total_threads)
        sound = sound && is_sound(matrix_unit_of(u, t, rates));
    sound = __syncthreads_and(sound);

    if (sound) {
      if constexpr (has_memory<typename Plan::rule>)
        for (int u = int(threadIdx.x); u < count; u += total_threads) v.memories[u] = w.next_memories[u];
      if (threadIdx.x == 0) advance<Plan>(*v.control, v.groups[0].rule, policies);
    } else {
      if (threadIdx.x == 0) skip(*v.control, find_fault(count, t, rates));
      __syncthreads();
      if constexpr (!Plan::may_skip)
        for (int u = int(threadIdx.x); u < count; u += total_threads) v.units[u].frozen = true;
    }
    __syncthreads();
    return sound;
  }

  /// What the sums of the next step need.
  __device__ void prepare() const {
    std::int64_t const t = v.control->step + 1;
    if constexpr (Plan::has_step_terms)
      if (threadIdx.x == 0) *w.sum_step_terms = find_step_terms<Plan>(v.groups[0].rule, policies, t);
    for (int u = int(threadIdx.x); u < sum_terms_count(); u += total_threads) {
      int const g = Plan::sum_terms_per_tensor ? v.tensors[u].group : u;
      v.sum_terms[u] = terms_for_sums<Plan>(v.groups[g], policies, t, v.memories, u, rates_of(*v.control));
    }
  }

  /// For thread 0.
  __device__ void write_late_report() const {
    control_block& slot = w.late->of(v.control->calls);
    slot = *v.control;
    slot.scale = *w.scale;
  }

  /// This rank has what it met the others for.
  __device__ void leave_collective() const {
    if constexpr (Plan::parallel) {
      auto const& team = get<kind::parallel>(policies);
      if (threadIdx.x == 0) leave(*team.progress, *team.now);
    }
  }

  /// For thread 0.
  __device__ double find_perturbation() const {
    return perturbation_factor<Plan>(policies, norm_totals_from<Plan>([&](int row) { return total(row); }));
  }

 private:
  /// A row's total over all chunks, for thread 0.
  __device__ double total(int row) const {
    __shared__ double of_warps[total_threads / warp];
    double const* x = v.partial + row * v.chunk_count;
    double sum = 0;
    if (Plan::keeps_largest(row)) {
      for (std::int64_t c = threadIdx.x; c < v.chunk_count; c += total_threads) sum = larger(sum, x[c]);
      sum = reduce_block(of_warps, sum, combine<true>{});
    } else {
      for (std::int64_t c = threadIdx.x; c < v.chunk_count; c += total_threads) sum += x[c];
      sum = reduce_block(of_warps, sum, combine<false>{});
    }
    __syncthreads();
    return sum;
  }

  /// A row's total of count values by the calling warp, for its first lane.
  template <class Value> __device__ double warp_total(int row, std::int64_t count, Value const& value) const {
    int const lane = int(threadIdx.x) % warp;
    double sum = 0;
    if (Plan::keeps_largest(row)) {
      for (std::int64_t i = lane; i < count; i += warp) sum = larger(sum, value(i));
      sum = reduce_warp(sum, combine<true>{});
    } else {
      for (std::int64_t i = lane; i < count; i += warp) sum += value(i);
      sum = reduce_warp(sum, combine<false>{});
    }
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
    __shared__ double of_warps[total_threads / warp];
    add_tensors(0, Plan::norm_sums);
    double const inverse = v.control->factor;
    double smallest = 1;
    auto const total_of = [&](int row, int t) { return v.totals[std::int64_t(row) * v.tensor_count + t]; };
    auto const keep = [&](int u, norm_totals const& x) {
      double const factor = clip_factor<Plan>(policies, x, inverse);
      w.factors[u] = inverse * factor;
      smallest = min(smallest, factor);
    };
    if constexpr (Plan::clip_over == scope::tensor) {
      for (int u = int(threadIdx.x); u < v.tensor_count; u += total_threads) {
        if constexpr (Plan::clips_rows)
          if (v.clipped.of[u].several()) {
            w.factors[u] = inverse;
            continue;
          }
        keep(u, norm_totals_from<Plan>([&](int row) { return total_of(row, u); }));
      }
      if constexpr (Plan::clips_rows)
        for (int u = 0; u < v.tensor_count; ++u) smallest = min(smallest, find_row_factors(u));
    } else {
      for (int g = int(threadIdx.x) / warp; g < v.group_count; g += total_threads / warp) {
        auto const x = norm_totals_from<Plan>([&](int row) {
          return warp_total(row, v.tensor_count,
                            [&](std::int64_t t) { return v.tensors[t].group == g ? total_of(row, int(t)) : 0; });
        });
        if (threadIdx.x % warp == 0) keep(g, x);
      }
    }
    smallest = reduce_block(of_warps, smallest, [](double a, double b) { return min(a, b); });
    if (threadIdx.x == 0) v.control->clip = smallest;
    __syncthreads();
  }

  /// The smallest of those of a tensor's rows that this thread finds; 1 where the tensor is one unit.
  __device__ double find_row_factors(int u) const {
    row_pieces const rows = v.clipped.of[u];
    double smallest = 1;
    if (!rows.several()) return smallest;
    for (std::int64_t row = threadIdx.x; row < v.tensors[u].count / rows.columns; row += total_threads) {
      auto const x = totals_of_row<Plan>(rows, row, v.clipped.partial, v.clipped.pieces);
      double const factor = clip_factor<Plan>(policies, x, v.control->factor);
      v.clipped.factors[rows.first_row + row] = typename Plan::real(v.control->factor * factor);
      smallest = min(smallest, factor);
    }
    return smallest;
  }

  __device__ void find_bad_chunk() const {
    __shared__ long long of_warps[total_threads / warp];
    long long bad = v.chunk_count;
    for (long long c = threadIdx.x; c < bad; c += total_threads)
      if (!norm_totals_from<Plan>([&](int row) { return v.partial[row * v.chunk_count + c]; }).finite()) bad = c;
    bad = reduce_block(of_warps, bad, [](long long a, long long b) { return a < b ? a : b; });
    if (threadIdx.x == 0) v.control->bad_chunk = bad < v.chunk_count ? bad : -1;
  }

  __device__ int sum_terms_count() const { return Plan::sum_terms_per_tensor ? v.tensor_count : v.group_count; }

  /// Whether anything follows the rule that has this unit.
  __device__ bool has_elements(int u) const {
    if constexpr (Plan::unit_per_tensor) return v.tensors[u].count > 0 && !v.tensors[u].matrix;
    else return w.has_elements;
  }

  /// The unit of a matrix in the next update, but for its factor, which is that of the gradients' unit.
  __device__ auto matrix_unit_of(int u, std::int64_t t, rate_change const& rates) const {
    using rule = typename Plan::matrix_rule;
    auto const& x = v.tensors[w.matrices.tensor[u]];
    auto const r = scheduled_for_matrices(w.matrices.rules[x.group], policies, t - 1, x.group, rates);
    shape const s{x.count / w.matrices.columns[u], w.matrices.columns[u]};
    return narrowed<rule, typename Plan::real>(r.at(t, s), 1, v.groups[x.group].frozen);
  }

  /// What is wrong, in the order of the host's find_terms(); for one thread, behind the others.
  __device__ term_fault find_fault(int units, std::int64_t t, rate_change const& rates) const {
    if constexpr (Plan::has_step_terms)
      if (!is_sound(*w.step_terms)) return {term_fault::policies};
    auto const fault = [&](auto const& x, int u, int g, term_fault::place what) {
      return fault_of(x, scheduled(v.groups[g].rule, policies, t - 1, g, rates), u, what);
    };
    if constexpr (Plan::sums)
      for (int u = 0; u < sum_terms_count(); ++u)
        if (!is_sound(v.sum_terms[u]))
          return fault(v.sum_terms[u], u, Plan::sum_terms_per_tensor ? v.tensors[u].group : u, term_fault::sums);
    for (int u = 0; u < units; ++u)
      if (!is_sound(v.units[u]))
        return fault(v.units[u], u, Plan::unit_per_tensor ? v.tensors[u].group : u, term_fault::term);
    if constexpr (Plan::has_matrices)
      for (int u = 0; u < w.matrices.count; ++u)
        if (auto const x = matrix_unit_of(u, t, rates); !is_sound(x))
          return fault_of(x, w.matrices.rules[0], w.matrices.tensor[u], term_fault::matrices);
    return {};
  }

  device_view<Plan> const& v;
  control_view<Plan> const& w;
  typename Plan::policies const& policies;
};

template <class Plan>
__global__ __launch_bounds__(total_threads) void decide_step(device_view<Plan> v, control_view<Plan> w,
                                                             step_call call) {
  controller<Plan> const c(v, w);
  c.decide(call);
  if (threadIdx.x == 0) c.write_late_report();
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void find_all_terms(device_view<Plan> v, control_view<Plan> w) {
  controller<Plan> const c(v, w);
  c.leave_collective();
  if (!v.control->applied) return;
  bool const applied = c.find_terms();
  if (threadIdx.x == 0) c.write_late_report();
  if constexpr (Plan::sums)
    if (applied) c.prepare();
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void control_step(device_view<Plan> v, control_view<Plan> w,
                                                              step_call call) {
  controller<Plan> const c(v, w);
  c.leave_collective();
  bool const applied = c.decide(call) && c.find_terms();
  if (threadIdx.x == 0) c.write_late_report();
  if constexpr (Plan::sums)
    if (applied) c.prepare();
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void find_perturbation(device_view<Plan> v, control_view<Plan> w,
                                                                   double* factor) {
  double const x = controller<Plan>(v, w).find_perturbation();
  if (threadIdx.x == 0) *factor = x;
}

template <class Plan>
__global__ void observe_step(device_view<Plan> v, control_view<Plan> w, float const* where, double metric) {
  observe_metric<Plan>(*v.control, w.policies, where, metric);
}

template <class T> __global__ void set_value(T* to, T x) { *to = x; }

template <class Policy> __global__ void update_scale(shared_scale* s, Policy policy) { update_shared(*s, policy); }

/// As many groups as fit into a kernel's parameters.
template <class Rule> struct group_batch {
  static constexpr int capacity = int(2048 / sizeof(group_entry<Rule>)) > 0 ? int(2048 / sizeof(group_entry<Rule>)) : 1;
  int first, count;
  std::uint64_t hash;  // of all, where ranks compare them
  group_entry<Rule> entry[capacity];
};

template <class Plan>
__global__ __launch_bounds__(total_threads) void set_step_groups(device_view<Plan> v, control_view<Plan> w,
                                                                 group_batch<typename Plan::rule> batch) {
  for (int g = int(threadIdx.x); g < batch.count; g += total_threads) v.groups[batch.first + g] = batch.entry[g];
  if constexpr (Plan::parallel)
    if (threadIdx.x == 0) get<kind::parallel>(w.policies).now->groups = batch.hash;
  __syncthreads();
  if constexpr (Plan::sums) controller<Plan>(v, w).prepare();
}

}  // namespace descent::detail
