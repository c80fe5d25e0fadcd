// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/block_reduce.cuh>
#include <descent/engine/cuda/device_view.cuh>
#include <descent/engine/step/controller.hpp>

/// The kernels of the controller: one block each.
namespace descent::detail {

/// The controller's threads: a block of `total_threads`.
struct block_threads {
  __device__ static bool first() { return threadIdx.x == 0; }
  __device__ static bool first_of_warp() { return threadIdx.x % warp == 0; }
  __device__ static void sync() { __syncthreads(); }
  __device__ static bool all(bool x) { return __syncthreads_and(x); }
  __device__ static double smallest(double x) {
    __shared__ double of_warps[total_threads / warp];
    return reduce_block(of_warps, x, [](double a, double b) { return min(a, b); });
  }
  template <class Index, class F> __device__ static void each(Index count, F const& f) {
    for (auto i = Index(threadIdx.x); i < count; i += total_threads) f(i);
  }
  template <class F> __device__ static void each_warp(int count, F const& f) {
    for (int i = int(threadIdx.x) / warp; i < count; i += total_threads / warp) f(i);
  }
  /// The total of value(i); valid on the first thread.
  template <class Value> __device__ static double total(bool largest, std::int64_t count, Value const& value) {
    __shared__ double of_warps[total_threads / warp];
    double const sum = largest
                           ? reduce_block(of_warps, lane_total<true, total_threads>(count, value), combine<true>{})
                           : reduce_block(of_warps, lane_total<false, total_threads>(count, value), combine<false>{});
    __syncthreads();
    return sum;
  }
  /// The same by the calling warp; valid on its first thread.
  template <class Value> __device__ static double warp_total(bool largest, std::int64_t count, Value const& value) {
    return largest ? reduce_warp(lane_total<true, warp>(count, value), combine<true>{})
                   : reduce_warp(lane_total<false, warp>(count, value), combine<false>{});
  }
  /// The first i with f(i), or count; valid on the first thread.
  template <class F> __device__ static std::int64_t find(std::int64_t count, F const& f) {
    __shared__ long long of_warps[total_threads / warp];
    long long found = count;
    for (long long i = threadIdx.x; i < found; i += total_threads)
      if (f(i)) found = i;
    return reduce_block(of_warps, found, [](long long a, long long b) { return a < b ? a : b; });
  }

 private:
  template <bool Largest, int Lanes, class Value>
  __device__ static double lane_total(std::int64_t count, Value const& value) {
    double sum = 0;
    for (std::int64_t i = threadIdx.x % Lanes; i < count; i += Lanes) sum = combine<Largest>{}(sum, value(i));
    return sum;
  }
};

/// The terms of the matrices in an update, for the controller. Their factor is 1 here: the true one is that of the
/// gradients' unit and is checked there.
template <class Plan, bool = Plan::has_matrices> struct matrix_terms_view {
  __device__ matrix_terms_view(device_view<Plan> const&, control_view<Plan> const&) {}
};
template <class Plan> struct matrix_terms_view<Plan, true> {
  device_view<Plan> const& v;
  control_view<Plan> const& w;
  int count;

  __device__ matrix_terms_view(device_view<Plan> const& view, control_view<Plan> const& control)
      : v(view), w(control), count(control.matrices.count) {}
  __device__ auto terms(int u, std::int64_t t, rate_change const& rates) const {
    auto const& x = v.all_tensors()[tensor(u)];
    auto const r = scheduled_for_matrices(w.matrices.rules[x.group], w.policies, t - 1, x.group, rates);
    shape const s{x.count / w.matrices.columns[u], w.matrices.columns[u]};
    return checked<typename Plan::matrix_rule, typename Plan::real, typename Plan::policies>(r, r.at(t, s), 1,
                                                                                             v.groups[x.group].frozen);
  }
  __device__ term_fault stray_field(int u, std::int64_t t, rate_change const& rates) const {
    int const group = v.all_tensors()[tensor(u)].group;
    return stray_field_of<typename Plan::real, typename Plan::policies>(
        scheduled_for_matrices(w.matrices.rules[group], w.policies, t - 1, group, rates), group,
        term_fault::matrix_field);
  }
  __device__ auto const& rule(int u) const { return w.matrices.rules[v.all_tensors()[tensor(u)].group]; }
  __device__ std::int32_t tensor(int u) const { return w.matrices.tensor[u]; }
};

/// The controller on a device, with the work around it that only a device needs.
template <class Plan> class device_controller {
 public:
  __device__ device_controller(device_view<Plan> const& view, control_view<Plan> const& control)
      : v(view), w(control), decider(arrays()) {}

  __device__ bool decide(step_call const& call) const {
    if (threadIdx.x == 0) w.late->complete_until(v.control->calls);
    return decider.decide(call);
  }
  __device__ void find_terms_ahead() const {
    if constexpr (Plan::terms_ahead) decider.find_terms_ahead();
  }
  __device__ bool find_terms() const {
    return decider.template find_terms<Plan::terms_ahead>(matrix_terms_view<Plan>(v, w));
  }
  __device__ void prepare() const { decider.prepare(); }

  __device__ void report() const {
    if (!w.reports) return;
    __syncthreads();
    report_late(*w.late, *v.control, *w.scale);
  }

  /// Marks the collective as finished on this rank.
  __device__ void leave_collective() const {
    if constexpr (Plan::parallel) {
      auto const& parallel = get<kind::parallel>(w.policies);
      if (threadIdx.x == 0) leave(*parallel.progress, *parallel.now);
    }
    if constexpr (Plan::splits && Plan::measures)
      if (threadIdx.x == 0) leave(*v.model.progress, *v.model.calls, v.met());
  }
  /// After the pass of the rule's sums: returns false, with the step undone, if not all ranks were in it.
  __device__ bool keeps_sums() const {
    if constexpr (Plan::splits) {
      if (v.model.calls->complete(v.sums_met())) return true;
      if (threadIdx.x == 0) {
        *v.control = *v.model.before;
        v.control->lost = v.control->waiting = true;
        v.control->applied = false;
      }
      __syncthreads();
      return false;
    }
    return true;
  }

  /// Valid on the first thread.
  __device__ double find_perturbation() const { return perturbation_factor<Plan>(w.policies, decider.totals()); }

 private:
  __device__ control_arrays<Plan> arrays() const {
    __shared__ double sums[Plan::sum_count + 1];
    auto const* const tensors = v.all_tensors();
    auto const count = v.all_tensor_count();
    auto const chunks = v.all_chunk_count();
    control_arrays<Plan> a{*v.control, *w.scale, w.policies, tensors, v.groups, count, v.group_count, chunks,
                           w.has_elements, v.partial, v.totals, sums, w.factors, v.units, v.sum_terms, w.step_terms,
                           w.sum_step_terms, v.memories, w.next_memories, nullptr, v.clipped, w.members};
    if constexpr (Plan::per_row_step) a.rules = v.extra.rules;
    if constexpr (Plan::splits && Plan::measures) a.met = v.model.calls->complete(v.met());
    return a;
  }

  device_view<Plan> const& v;
  control_view<Plan> const& w;
  controller<Plan, block_threads> decider;
};

template <class Plan>
__global__ __launch_bounds__(total_threads) void decide_step(device_view<Plan> v, control_view<Plan> w,
                                                             step_call call) {
  await_work_before();
  let_next_begin();
  device_controller<Plan> const c(v, w);
  c.decide(call);
  c.report();
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void find_all_terms(device_view<Plan> v, control_view<Plan> w) {
  await_work_before();
  let_next_begin();
  device_controller<Plan> const c(v, w);
  c.leave_collective();
  if (!v.control->applied) return;
  if (!c.keeps_sums()) return c.report();
  bool const applied = c.find_terms();
  c.report();
  if constexpr (Plan::sums)
    if (applied) c.prepare();
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void control_step(device_view<Plan> v, control_view<Plan> w,
                                                              step_call call) {
  device_controller<Plan> const c(v, w);
  c.find_terms_ahead();
  await_work_before();
  let_next_begin();
  c.leave_collective();
  bool const applied = c.decide(call) && c.find_terms();
  c.report();
  if constexpr (Plan::sums)
    if (applied) c.prepare();
}

template <class Plan>
__global__ __launch_bounds__(total_threads) void find_perturbation(device_view<Plan> v, control_view<Plan> w,
                                                                   double* factor) {
  double const x = device_controller<Plan>(v, w).find_perturbation();
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
  std::uint64_t hash;  // of all groups, if ranks compare them
  group_entry<Rule> entry[std::size_t(capacity)];
};

template <class Plan>
__global__ __launch_bounds__(total_threads) void set_step_groups(device_view<Plan> v, control_view<Plan> w,
                                                                 group_batch<typename Plan::rule> batch) {
  for (int g = int(threadIdx.x); g < batch.count; g += total_threads) v.groups[batch.first + g] = batch.entry[g];
  if constexpr (Plan::parallel)
    if (threadIdx.x == 0) get<kind::parallel>(w.policies).now->groups = batch.hash;
  if constexpr (Plan::splits)
    if (threadIdx.x == 0) v.model.calls->groups = batch.hash;
  __syncthreads();
  if constexpr (Plan::sums) device_controller<Plan>(v, w).prepare();
}

/// Sends the groups as kernel parameters.
template <class Plan, class Groups>
void send_groups(Groups const& groups, std::uint64_t hash, cudaStream_t stream, device_view<Plan> const& view,
                 control_view<Plan> const& control) {
  for (std::size_t first = 0; first < groups.size();) {
    group_batch<typename Plan::rule> batch{int(first), 0, hash, {}};
    while (batch.count < batch.capacity && first < groups.size()) batch.entry[batch.count++] = groups[first++];
    launch(set_step_groups<Plan>, 1, total_threads, stream, view, control, batch);
  }
}

}  // namespace descent::detail
