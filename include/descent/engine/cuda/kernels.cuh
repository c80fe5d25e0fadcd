// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/block_reduce.cuh>
#include <descent/engine/cuda/device_view.cuh>
#include <descent/engine/cuda/launch.cuh>
#include <descent/engine/step/measure.hpp>
#include <descent/engine/step/passes.hpp>

/// The kernels that read and write the elements.
namespace descent::detail {

// ---- over elements: one block for each chunk, several packets for each thread ---------------------------------------

/// With three blocks per multiprocessor, a thread has 80 registers: enough for two members of state in float. More
/// state, double, or row factors get two blocks and 128 registers. Either way, enough loads are in flight to keep the
/// memory busy. docs/design/0006 has measurements.
inline constexpr int packet_threads = int(chunk_packets) / 2;
template <class Plan>
inline constexpr int packet_blocks =
    std::is_same_v<typename Plan::real, double> || Plan::slots > 2 || Plan::clips_rows ? 2 : 3;
/// Threads of a block in the kernel of Body, which may choose fewer.
template <class Body> inline constexpr int threads_of = [] {
  if constexpr (requires { Body::threads; }) return Body::threads;
  else return packet_threads;
}();
template <class Body> inline constexpr int blocks_of = Body::blocks * packet_threads / threads_of<Body>;

/// Calls body(tensor, first element, M): with M = 8 for whole packets of an aligned tensor, otherwise with M = 1 for
/// single elements. In an unaligned tensor, adjacent threads get adjacent elements.
template <class Body>
__global__ __launch_bounds__(threads_of<Body>, blocks_of<Body>) void each_packet(Body const body) {
  auto const& v = body.v;
  std::int64_t chunk = blockIdx.x;
  if constexpr (requires { body.first_chunk; }) chunk += body.first_chunk;
  if constexpr (!requires { Body::all_chunks; }) chunk = v.own_chunk(chunk);
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  auto const& t = v.tensors[tensor];
  auto const [begin, size] = span_of(chunk, t);
  if constexpr (requires { body.begin(); }) body.begin();
  if (!body.wants(tensor)) return;
  constexpr int threads = threads_of<Body>;
  int const thread = int(blockIdx.y * threads + threadIdx.x), all = int(gridDim.y * threads);
  if (t.aligned) {
#pragma unroll 1
    for (int first = thread * int(packet_size); first < size; first += all * int(packet_size))
      if (first + int(packet_size) <= size) body(tensor, begin + first, std::integral_constant<int, packet_size>{});
      else for (int j = first; j < size; ++j) body(tensor, begin + j, std::integral_constant<int, 1>{});
  } else {
    for (int j = thread; j < size; j += all) body(tensor, begin + j, std::integral_constant<int, 1>{});
  }
}
/// Launches it; early, if the body can begin early. If there are few chunks, several blocks share each, to spread the
/// work over more multiprocessors.
template <class Body> void launch_packets(bool early, std::int64_t chunks, cudaStream_t stream, Body const& body) {
  constexpr int threads = threads_of<Body>, parts = int(chunk_packets) / threads;
  early = early && requires { body.begin(); };
  launch_early(early, each_packet<Body>, launch_grid(chunks, chunks <= 128 ? parts : 1), threads, stream, body);
}

/// Applies body to all packets.
template <class Plan, class Body> struct all_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  Body body;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      body.template operator()<Typed, typename Plan::real, M>(x, i, packet_extent{M, true});
    });
  }
};

/// The same from a chunk on.
template <class Plan, class Body> struct some_packets : all_packets<Plan, Body> { std::int64_t first_chunk; };

/// Applies body(loss scale) to each packet of gradients. The scale is 1 if they are already unscaled.
template <class Plan, class Body> struct scaled_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  loss_scale_state const* scale;
  Body body;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    using real = typename Plan::real;
    real const factor = v.control->unscaled ? real(1) : real(scale->scale);
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      body(factor).template operator()<Typed, real, M>(x, i, packet_extent{M, true});
    });
  }
};
struct unscale_body {
  template <class Real> __device__ auto operator()(Real scale) const { return multiply_all<Real>{1 / scale}; }
};
template <class F> struct transform_body {
  F f;
  template <class Real> __device__ auto operator()(Real scale) const {
    return transform_all<F, Real>{f, scale, 1 / scale};
  }
};

template <class Plan> struct ascend_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  std::byte* saved;
  double const* factor;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    using real = typename Plan::real;
    real const rate = v.groups[v.tensors[tensor].group].frozen ? real(0) : real(*factor);
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      ascend_all<real>{saved, rate}.template operator()<Typed, real, M>(x, i, packet_extent{M, true});
    });
  }
};

/// Initializes masters, averages, slow weights and state.
template <class Plan> struct start_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    auto const& rule = v.groups[v.tensors[tensor].group].rule;
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      start_packet<Typed, typename Plan::real, M>(x, i, {M, true}, rule);
    });
  }
};
template <class Plan, swap_target To> struct swap_in_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  std::byte* saved;
  typename Plan::policies policies;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    auto const& group = v.groups[v.tensors[tensor].group];
    auto const rule = scheduled(group.rule, policies, v.control->step, group.number, rates_of(*v.control));
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      swap_in_packet<Typed, typename Plan::real, M, To>(x, i, {M, true}, saved, rule,
                                                        To == swap_target::ahead && group.frozen);
    });
  }
};

template <class Plan> struct update_packets {
  /// Where an element has few bytes, a thread takes four packets: starting a block takes a larger share of the time.
  static constexpr int threads = Plan::largest_update_bytes <= 16 ? packet_threads / 2 : packet_threads;
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  late_report* late = nullptr;  // where the report goes, if the controller does not write it
  loss_scale_state const* scale = nullptr;
  /// The report is not left to the controller, because the end of a kernel waits for its writes to the host.
  __device__ void begin() const {
    await_work_before();
    if (late && blockIdx.x == 0 && blockIdx.y == 0) report_late(*late, *v.control, *scale);
  }
  __device__ auto const& unit_terms_of(std::int32_t tensor) const {
    return v.units[Plan::unit_per_tensor ? v.number_of(tensor) : v.tensors[tensor].group];
  }
  __device__ bool wants(std::int32_t tensor) const {
    if (Plan::may_skip && !v.control->applied)
      return Plan::zeroes && !v.control->waiting && !v.groups[v.tensors[tensor].group].frozen;
    return !unit_terms_of(tensor).frozen;
  }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      if constexpr (Plan::selects_rows)
        each_selected<Plan::per_row_step>(
            v.extra.rows[tensor], i, M, [&](std::int64_t row) { update<M>(x, tensor, i, row); },
            [&](int j, std::int64_t row) { update<1>(x, tensor, i + j, row); });
      else update<M>(x, tensor, i, 0);
    });
  }

 private:
  template <int M, class Typed>
  __device__ void update(buffers<Typed> const& x, std::int32_t tensor, std::int64_t i,
                         [[maybe_unused]] std::int64_t row) const {
    using real = typename Plan::real;
    if constexpr (Plan::zeroes)
      if (!v.control->applied) return zero_packet<Typed, real, M>(x, i, {M, true});
    auto const& unit = unit_terms_of(tensor);
    auto const with = [&](auto const& k) {
      if constexpr (Plan::has_step_terms)
        update_packet<Typed, real, M>(x, i, {M, true}, unit.factor, k, *v.extra.step_terms);
      else update_packet<Typed, real, M>(x, i, {M, true}, unit.factor, k);
    };
    if constexpr (Plan::per_row_step)
      with(terms_of_row<Plan>(v.extra.rules[v.tensors[tensor].group], v.extra.rows[tensor].updates[row]));
    else with(unit.terms);
  }
};

/// Counts the updates of rows, before the update, in plans whose rows count their own.
template <class Plan> __global__ __launch_bounds__(packet_threads) void count_updates(device_view<Plan> v) {
  if (!v.control->applied) return;
  std::int64_t const chunk = blockIdx.x;
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  auto const& t = v.tensors[tensor];
  if (v.groups[t.group].frozen) return;
  auto const [begin, size] = span_of(chunk, t);
  count_rows(v.extra.rows[tensor], begin, size, int(threadIdx.x), packet_threads);
}

// ---- over chunks: one block each, one partial for each sum ---------------------------------------------------------

/// The contribution of each piece of a chunk to the norm of its row: one warp per piece, element k by lane k mod warp.
template <class Plan>
__device__ void measure_pieces(device_view<Plan> const& v, std::int32_t tensor, chunk_span const& span) {
  row_pieces const rows = v.clipped.of[v.number_of(tensor)];
  if (!rows.units) return;
  bool const frozen = v.groups[v.tensors[tensor].group].frozen;
  std::int64_t const first = rows.piece_at(span.begin), count = pieces_in(rows, span);
  v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
    for (std::int64_t k = threadIdx.x / warp; k < count; k += chunk_threads / warp) {
      auto const piece = piece_in(rows, span, k);
      double sum[Plan::norm_sums] = {}, square[Plan::norm_sums];
      for (std::int64_t i = piece.begin + threadIdx.x % warp; i < piece.end && !frozen; i += warp) {
        squares_at<Typed, typename Plan::real>(square, x, i);
        for (int c = 0; c < Plan::norm_sums; ++c) sum[c] += square[c];
      }
      for (int c = 0; c < Plan::norm_sums; ++c) {
        double const all = reduce_warp(sum[c], combine<false>{});
        if (threadIdx.x % warp == 0) v.clipped.partial[(first + k) * Plan::norm_sums + c] = all;
      }
    }
  });
}

template <class Plan, measure What> struct packet_sums { double of[measured<Plan, What>][4]; };
/// measure_packet() for a packet that is not whole or not aligned. It is not inlined, because it takes more registers.
template <class Plan, measure What, class Real>
__device__ __noinline__ packet_sums<Plan, What> measure_odd_packet(buffers<Plan> x, std::int64_t i, packet_extent e,
                                                                   Real factor,
                                                                   typename Plan::update::template terms<Real> k,
                                                                   step_terms_of<Plan> step, unsigned in) {
  packet_sums<Plan, What> sums = {};
  measure_packet<Plan, What, Real>(sums.of, x, i, e, factor, k, step, in);
  return sums;
}

template <class Plan, measure What>
__device__ void measure_chunk(device_view<Plan> const& v, control_view<Plan> const& w, step_call const& call) {
  using real = typename Plan::real;
  constexpr int sums = measured<Plan, What>;
  constexpr bool largest = first_is_largest<Plan, What>;
  // While a thread measures a packet, its totals of the packets before leave their registers.
  constexpr bool parks = What != measure::norm && sums <= 5;
  __shared__ double of_warps[sums][chunk_threads / warp], parked[parks ? sums : 1][4][parks ? chunk_threads : 1];
  let_next_begin();
  if (What == measure::sums ? !v.control->applied : !completes<Plan>(*v.control, w.policies, call)) return;

  std::int64_t const chunk = v.own_chunk(blockIdx.x);
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  bool counts = true;
  if constexpr (Plan::splits) counts = v.model.counts[tensor];
  // Of a copy that another rank counts, the step may still need the sum over ranks and the norms of the rows.
  if (!counts && (What == measure::sums || (!Plan::adds_when_read && !Plan::clips_rows))) return;
  auto const& t = v.tensors[tensor];
  auto const [begin, size] = span_of(chunk, t);
  double total[sums][4] = {};
  auto const each_total = [&](auto const& f) {
    for (int c = 0; c < sums; ++c)
      for (int j = 0; j < 4; ++j) f(total[c][j], c, j);
  };
  auto const both = [](int c, double a, double b) { return largest && c == 0 ? larger(a, b) : a + b; };
  // Without a branch, so that this load and those of the terms and pointers do not wait for each other.
  int const measured_size = v.groups[t.group].frozen ? 0 : size;
  typename Plan::update::template terms<real> k{};
  step_terms_of<Plan> step{};
  real factor = 1;
  if constexpr (What != measure::norm) {
    k = v.sum_terms[Plan::sum_terms_per_tensor ? v.number_of(tensor) : t.group].terms;
    if constexpr (Plan::has_step_terms) step = *w.sum_step_terms;
    if constexpr (What == measure::norm_and_sums)
      factor = real(gradient_factor<Plan>(*v.control, w.policies, *w.scale, call));
    else if constexpr (Plan::clip_over == scope::model) factor = real(v.control->factor);
    else factor = real(w.factors[Plan::clip_over == scope::tensor ? v.number_of(tensor) : t.group]);
  }
  v.with(tensor, [&, begin = begin]<class Typed>(buffers<Typed> const& x) {
    for (int q = int(threadIdx.x); q < chunk_packets; q += chunk_threads) {
      int const first = q * int(packet_size), left = measured_size - first;
      if (left <= 0) break;
      packet_extent const e{left < packet_size ? left : int(packet_size), left >= packet_size && t.aligned};
      if constexpr (parks) each_total([](double& sum, int, int) { sum = 0; });
      unsigned in = all_selected;
      if constexpr (Plan::selects_rows) in = selected(v.extra.rows[tensor], begin + first, e.size);
      if (Plan::has_matrices && Plan::sums && t.matrix) {
        measure_matrix_packet<Typed, What, real>(total, x, begin + first, e);
      } else if (in == 0) {  // no row of it is selected
      } else if (e.whole && (parks || !Plan::adds_when_read)) {  // all loads are in flight at once
        measure_packet<Typed, What, real>(total, x, begin + first, {int(packet_size), true}, factor, k, step, in);
      } else if constexpr (!parks) {
        measure_packet<Typed, What, real>(total, x, begin + first, e, factor, k, step, in);
      } else {
        auto const odd = measure_odd_packet<Typed, What>(x, begin + first, e, factor, k, step, in);
        each_total([&](double& sum, int c, int j) { sum = both(c, odd.of[c][j], sum); });
      }
      if constexpr (parks)
        each_total([&](double& sum, int c, int j) {
          double& all = parked[c][j][threadIdx.x];
          all = q < chunk_threads ? sum : both(c, all, sum);
        });
    }
  });
  if constexpr (parks)
    if (int(threadIdx.x) * int(packet_size) < measured_size)
      each_total([&](double& sum, int c, int j) { sum = parked[c][j][threadIdx.x]; });
  constexpr int first = What == measure::sums ? Plan::norm_sums : 0;
  for (int c = 0; c < sums; ++c) {
    double const sum = largest && c == 0 ? reduce_warp(fold<true>(total[c]), combine<true>{})
                                         : reduce_warp(fold(total[c]), combine<false>{});
    if (threadIdx.x % warp == 0) of_warps[c][threadIdx.x / warp] = sum;
  }
  __syncthreads();
  if (int const c = int(threadIdx.x); c < sums && counts) {
    double sum = of_warps[c][0];
    for (int w = 1; w < chunk_threads / warp; ++w) sum = both(c, sum, of_warps[c][w]);
    v.partial[(first + c) * v.all_chunk_count() + v.number_of_chunk(chunk, tensor)] = sum;
  }
  // Reads gradients that other threads have added up, which the barrier has made visible.
  if constexpr (Plan::clips_rows && What != measure::sums) measure_pieces(v, tensor, {begin, size});
}
/// As for packet_blocks: three blocks have 80 registers for a thread. On sm_90 a norm of 16-bit gradients takes 44, but
/// with six blocks 40, and is an eighth faster (docs/design/0006). On sm_80 some norms would spill.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
inline constexpr int small_norm_blocks = 6;
#else
inline constexpr int small_norm_blocks = 1;
#endif
template <class Plan, measure What> inline constexpr int measure_blocks = [] {
  if (What != measure::norm) return packet_blocks<Plan>;
  return sizeof(typename Plan::gradient) == 2 && !Plan::clips_rows ? small_norm_blocks : 1;
}();
template <class Plan, measure What>
__global__ __launch_bounds__(chunk_threads, (measure_blocks<Plan, What>)) void measure_chunks(device_view<Plan> v,
                                                                                              control_view<Plan> w,
                                                                                              step_call call) {
  measure_chunk<Plan, What>(v, w, call);
}

}  // namespace descent::detail
