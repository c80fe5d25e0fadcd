// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/cuda/block_reduce.cuh>
#include <descent/detail/cuda/device_view.cuh>
#include <descent/detail/cuda/launch.cuh>
#include <descent/detail/step/measure.hpp>
#include <descent/detail/step/passes.hpp>

/// The kernels that read and write the elements.
namespace descent::detail {

// ---- over elements: one block for each chunk, two packets for each thread ------------------------------------------

/// With three blocks per multiprocessor, a thread has 80 registers: enough for two members of state in float. More
/// state, double, or row factors get two blocks and 128 registers. Either way, enough loads are in flight to keep the
/// memory busy. docs/design/0006 has measurements.
inline constexpr int packet_threads = int(chunk_packets) / 2;
template <class Plan>
inline constexpr int packet_blocks =
    std::is_same_v<typename Plan::real, double> || Plan::slots > 2 || Plan::clips_rows ? 2 : 3;

/// Calls body(tensor, first element, M): with M = 8 for whole packets of an aligned tensor, otherwise with M = 1 for
/// single elements. In an unaligned tensor, adjacent threads get adjacent elements.
template <class Body> __global__ __launch_bounds__(packet_threads, Body::blocks) void each_packet(Body const body) {
  if constexpr (requires { Body::begins_early; }) await_work_before();
  auto const& v = body.v;
  std::int64_t chunk = blockIdx.x;
  if constexpr (requires { body.first_chunk; }) chunk += body.first_chunk;
  if constexpr (!requires { Body::all_chunks; }) chunk = v.own_chunk(chunk);
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  if (!body.wants(tensor)) return;
  auto const& t = v.tensors[tensor];
  auto const [begin, size] = span_of(chunk, t);
  int const thread = int(blockIdx.y * packet_threads + threadIdx.x), threads = int(gridDim.y * packet_threads);
  if (t.aligned) {
#pragma unroll 1
    for (int first = thread * int(packet_size); first < size; first += threads * int(packet_size))
      if (first + int(packet_size) <= size) body(tensor, begin + first, std::integral_constant<int, packet_size>{});
      else for (int j = first; j < size; ++j) body(tensor, begin + j, std::integral_constant<int, 1>{});
  } else {
    for (int j = thread; j < size; j += threads) body(tensor, begin + j, std::integral_constant<int, 1>{});
  }
}
/// Launches it. If there are few chunks, two blocks share each, so that the work is spread over more multiprocessors.
template <class Body> void launch_packets(bool early, std::int64_t chunks, cudaStream_t stream, Body const& body) {
  launch_early(early, each_packet<Body>, launch_grid(chunks, chunks <= 128 ? 2 : 1), packet_threads, stream, body);
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
  static constexpr int blocks = packet_blocks<Plan>;
  static constexpr bool begins_early = true;
  device_view<Plan> v;
  __device__ auto const& unit_terms_of(std::int32_t tensor) const {
    return v.units[Plan::unit_per_tensor ? tensor : v.tensors[tensor].group];
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
  row_pieces const rows = v.clipped.of[tensor];
  if (!rows.several()) return;
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
        if (threadIdx.x % warp == 0) v.clipped.partial[c * v.clipped.pieces + first + k] = all;
      }
    }
  });
}

template <class Plan, measure What>
__device__ void measure_chunk(device_view<Plan> const& v, control_view<Plan> const& w, step_call const& call) {
  using real = typename Plan::real;
  __shared__ double of_warps[measured<Plan, What>][chunk_threads / warp];
  let_next_begin();
  if (What == measure::sums ? !v.control->applied : !completes<Plan>(*v.control, w.policies, call)) return;

  std::int64_t const chunk = v.own_chunk(blockIdx.x);
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  auto const& t = v.tensors[tensor];
  auto const [begin, size] = span_of(chunk, t);
  double total[measured<Plan, What>][4] = {};
  if (!v.groups[t.group].frozen) {
    typename Plan::rule::template terms<real> k{};
    step_terms_of<Plan> step{};
    real factor = 1;
    if constexpr (What != measure::norm) {
      k = v.sum_terms[Plan::sum_terms_per_tensor ? tensor : t.group].terms;
      if constexpr (Plan::has_step_terms) step = *w.sum_step_terms;
      if constexpr (What == measure::norm_and_sums)
        factor = real(gradient_factor<Plan>(*v.control, w.policies, *w.scale, call));
      else if constexpr (Plan::clip_over == scope::model) factor = real(v.control->factor);
      else factor = real(w.factors[Plan::clip_over == scope::tensor ? tensor : t.group]);
    }
    v.with(tensor, [&, begin = begin, size = size]<class Typed>(buffers<Typed> const& x) {
      for (int q = int(threadIdx.x); q < chunk_packets; q += chunk_threads) {
        int const first = q * int(packet_size), left = size - first;
        if (left <= 0) break;
        packet_extent const e =
            left < packet_size ? packet_extent{left, false} : packet_extent{int(packet_size), t.aligned};
        if constexpr (Plan::has_matrices && Plan::sums) {
          if (t.matrix) {
            measure_matrix_packet<Typed, What, real>(total, x, begin + first, e);
            continue;
          }
        }
        if constexpr (Plan::selects_rows) {
          if (unsigned const in = selected(v.extra.rows[tensor], begin + first, e.size))
            measure_packet<Typed, What, real>(total, x, begin + first, e, factor, k, step, in);
        } else {
          measure_packet<Typed, What, real>(total, x, begin + first, e, factor, k, step);
        }
      }
    });
  }
  constexpr int first = What == measure::sums ? Plan::norm_sums : 0;
  for (int c = 0; c < measured<Plan, What>; ++c) {
    double sum;
    if (first_is_largest<Plan, What> && c == 0) sum = reduce_block(of_warps[c], fold<true>(total[c]), combine<true>{});
    else sum = reduce_block(of_warps[c], fold(total[c]), combine<false>{});
    if (threadIdx.x == 0) v.partial[(first + c) * v.chunk_count + chunk] = sum;
  }
  if constexpr (Plan::clips_rows && What != measure::sums) {
    __syncthreads();  // measure_pieces() reads gradients that other threads added up
    measure_pieces(v, tensor, {begin, size});
  }
}
template <class Plan, measure What>
__global__ __launch_bounds__(chunk_threads) void measure_chunks(device_view<Plan> v, control_view<Plan> w,
                                                                step_call call) {
  measure_chunk<Plan, What>(v, w, call);
}

}  // namespace descent::detail
