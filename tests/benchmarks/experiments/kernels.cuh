// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include "hints.cuh"
#include "problem.cuh"

#include <cooperative_groups.h>
#include <cub/device/device_for.cuh>
#include <cub/warp/warp_reduce.cuh>

/// Other ways to launch the library's packet functions.
namespace experiments {

/// The packets of a chunk starting at `packet`, one for each thread of the block.
template <class Body> __device__ void do_packets(Body const& body, std::int64_t chunk, int packet, int threads) {
  auto const& v = body.v;
  std::int32_t const tensor = v.tensor_of_chunk[chunk];
  if (!body.wants(tensor)) return;
  auto const& t = v.tensors[tensor];
  auto const [begin, size] = detail::span_of(chunk, t);
  constexpr int length = int(detail::packet_size);
  int const thread = int(threadIdx.x);
  if (t.aligned) {
    int const first = (packet + thread) * length;
    if (first + length <= size) body(tensor, begin + first, std::integral_constant<int, length>{});
    else for (int j = first; j < size; ++j) body(tensor, begin + j, std::integral_constant<int, 1>{});
  } else {
    int const all = (packet + threads) * length, end = all < size ? all : size;
    for (int j = packet * length + thread; j < end; j += threads)
      body(tensor, begin + j, std::integral_constant<int, 1>{});
  }
}

/// Chunks in pieces of one packet for each thread. A block does `run` consecutive pieces, then those one grid further
/// on, until there are none.
template <class Body, int Threads, int Blocks> struct pieces_of {
  static constexpr int pieces = int(detail::chunk_packets) / Threads;
  Body body;
  __device__ void all(std::int64_t count, int run) const {
    for (std::int64_t first = std::int64_t(blockIdx.x) * run; first < count; first += std::int64_t(gridDim.x) * run)
      for (std::int64_t p = first; p < first + run && p < count; ++p)
        do_packets(body, p / pieces, int(p % pieces) * Threads, Threads);
  }
};
template <class Body, int Threads, int Blocks>
__global__ __launch_bounds__(Threads, Blocks) void each_piece(pieces_of<Body, Threads, Blocks> const of,
                                                              std::int64_t count, int run) {
  of.all(count, run);
}

/// A chunk for each block, with several packets of a thread in flight at once.
template <class Body, int Threads, int Blocks, int Unroll>
__global__ __launch_bounds__(Threads, Blocks) void each_tile(Body const body) {
  constexpr int pieces = int(detail::chunk_packets) / Threads;
#pragma unroll Unroll
  for (int p = 0; p < pieces; ++p) do_packets(body, blockIdx.x, p * Threads, Threads);
}
/// The read-only pass with so many blocks on a multiprocessor.
template <class Plan, detail::measure What, int Blocks>
__global__ __launch_bounds__(detail::chunk_threads, Blocks) void measure_bounded(detail::device_view<Plan> v,
                                                                                 detail::control_view<Plan> w,
                                                                                 ds::step_call call) {
  detail::measure_chunk<Plan, What>(v, w, call);
}

/// For cub::DeviceFor::Bulk: the packet with this number among all packets.
template <class Body> struct packet_numbered {
  Body body;
  __device__ void operator()(std::int64_t q) const {
    auto const& v = body.v;
    std::int64_t const chunk = q / detail::chunk_packets;
    std::int32_t const tensor = v.tensor_of_chunk[chunk];
    if (!body.wants(tensor)) return;
    auto const& t = v.tensors[tensor];
    auto const [begin, size] = detail::span_of(chunk, t);
    constexpr int length = int(detail::packet_size);
    int const first = int(q % detail::chunk_packets) * length;
    if (t.aligned && first + length <= size) return body(tensor, begin + first, std::integral_constant<int, length>{});
    for (int j = first; j < size && j < first + length; ++j) body(tensor, begin + j, std::integral_constant<int, 1>{});
  }
};

// ---- cache hints ----

/// The plan with marked pointers: gradients, and values and states.
template <class Plan, hint Gradient, hint State> struct hinted_plan : Plan {
  using value = hinted<float, State>;
  using master_or_value = hinted<float, State>;
  using gradient = hinted<float, Gradient>;
  template <std::size_t> using slot = hinted<float, State>;
};

template <class Plan, hint Gradient, hint State> struct hinted_update {
  static_assert(std::is_same_v<typename Plan::value, float> && !Plan::has_extras && !Plan::has_step_terms);
  using marked = hinted_plan<Plan, Gradient, State>;
  static constexpr int blocks = detail::packet_blocks<Plan>;
  detail::device_view<Plan> v;
  __device__ bool wants(std::int32_t tensor) const { return detail::update_packets<Plan>{v}.wants(tensor); }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    detail::buffers<Plan> const x = v.of(tensor);
    auto* const value = reinterpret_cast<hinted<float, State>*>(x.value);
    detail::buffers<marked> y{value, reinterpret_cast<hinted<float, Gradient>*>(x.gradient), value, {}, {}};
    for (std::size_t s = 0; s < Plan::slots; ++s) y.slot[s] = x.slot[s];
    auto const& unit = v.units[v.tensors[tensor].group];
    detail::update_packet<marked, float, M>(y, i, {M, true}, unit.factor, unit.terms);
  }
};

// ---- fewer or earlier launches ----

__device__ inline void await_launch_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
__device__ inline void let_next_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// measure_chunks() for the norm in blocks of 512 threads, which do two chunks at a time. Lanes are added in the same
/// order: neighbours within a warp, then warps.
template <class Plan> __device__ void measure_pairs(detail::device_view<Plan> const& v) {
  static_assert(Plan::norm_sums == 1 && Plan::norm_of == ds::norm::l2 && !Plan::has_step_terms);
  using reduce = cub::WarpReduce<double>;
  constexpr int warps = detail::chunk_threads / detail::warp;
  __shared__ typename reduce::TempStorage shared[2 * warps];
  __shared__ double of_warp[2 * warps];
  int const half = int(threadIdx.x) / detail::chunk_threads, lane = int(threadIdx.x) % detail::chunk_threads;
  int const warp = int(threadIdx.x) / detail::warp;
  for (std::int64_t pair = blockIdx.x; 2 * pair < v.chunk_count; pair += gridDim.x) {
    std::int64_t const chunk = 2 * pair + half;
    double total[1][4] = {};
    if (chunk < v.chunk_count) {
      std::int32_t const tensor = v.tensor_of_chunk[chunk];
      auto const& t = v.tensors[tensor];
      auto const [begin, size] = detail::span_of(chunk, t);
      detail::buffers<Plan> const x = v.of(tensor);
      if (!v.groups[t.group].frozen)
        for (int q = lane; q < detail::chunk_packets; q += detail::chunk_threads) {
          int const first = q * int(detail::packet_size), left = size - first;
          if (left <= 0) break;
          auto const e = left < detail::packet_size ? detail::packet_extent{left, false}
                                                    : detail::packet_extent{int(detail::packet_size), t.aligned};
          detail::measure_packet<Plan, detail::measure::norm, float>(total, x, begin + first, e, 1.0f, {}, {});
        }
    }
    double const sum = reduce(shared[warp]).Sum(detail::fold(total[0]));
    if (threadIdx.x % detail::warp == 0) of_warp[warp] = sum;
    __syncthreads();
    if (lane == 0 && chunk < v.chunk_count) {
      double all = of_warp[warp];
      for (int w = 1; w < warps; ++w) all += of_warp[warp + w];
      v.partial[chunk] = all;
    }
    __syncthreads();
  }
}

/// Does the work of control_step().
template <class Plan>
__device__ void control_here(detail::device_view<Plan> const& v, detail::control_view<Plan> const& w) {
  detail::device_controller<Plan> const c(v, w);
  c.find_terms_ahead();
  if (c.decide({})) c.find_terms();
}

template <class Plan>
__global__ __launch_bounds__(detail::total_threads) void control_later(detail::device_view<Plan> v,
                                                                       detail::control_view<Plan> w) {
  let_next_launch();
  await_launch_before();
  control_here(v, w);
}
template <class Body>
__global__ __launch_bounds__(detail::packet_threads, Body::blocks) void update_later(Body const body) {
  await_launch_before();
  for (int packet = 0; packet < detail::chunk_packets; packet += detail::packet_threads)
    do_packets(body, blockIdx.x, packet, detail::packet_threads);
}

template <class Body, int Threads, int Blocks>
__global__ __launch_bounds__(Threads, Blocks) void pieces_later(pieces_of<Body, Threads, Blocks> const of,
                                                                std::int64_t count, int run) {
  await_launch_before();
  of.all(count, run);
}

/// Measures the norm; the last block runs the control block's part.
template <class Plan>
__global__ __launch_bounds__(detail::total_threads, 2) void measure_and_control(detail::device_view<Plan> v,
                                                                                detail::control_view<Plan> w,
                                                                                unsigned* done) {
  __shared__ bool last;
  let_next_launch();
  measure_pairs(v);
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  control_here(v, w);
  if (threadIdx.x == 0) *done = 0;
}

/// The whole step, with all blocks resident at once.
template <class Plan>
__global__ __launch_bounds__(detail::total_threads, 2) void whole_step(detail::device_view<Plan> v,
                                                                       detail::control_view<Plan> w) {
  auto const grid = cooperative_groups::this_grid();
  measure_pairs(v);
  grid.sync();
  if (blockIdx.x == 0) control_here(v, w);
  grid.sync();
  pieces_of<detail::update_packets<Plan>, detail::total_threads, 2>{{v}}.all(v.chunk_count, 1);
}

/// A launch with one attribute: cooperative, or allowed to begin before the preceding work has ended.
template <class... Parameters>
void launch_with(cudaLaunchAttributeID attribute, void (*kernel)(Parameters...), std::int64_t blocks, int threads,
                 cudaStream_t stream, std::type_identity_t<Parameters> const&... arguments) {
  cudaLaunchAttribute of{};
  of.id = attribute;
  if (attribute == cudaLaunchAttributeCooperative) of.val.cooperative = 1;
  else of.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(blocks));
  config.blockDim = dim3(unsigned(threads));
  config.stream = stream;
  config.attrs = &of;
  config.numAttrs = 1;
  void* pointers[] = {const_cast<void*>(static_cast<void const*>(&arguments))...};
  require_cuda(cudaLaunchKernelExC(&config, reinterpret_cast<void const*>(kernel), pointers), "kernel launch");
}

// ---- rules for comparison ----

/// AdamW with the approximate square root and division of the device.
struct adamw_approximate : ds::adamw {
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<Real, float>) {
      s.m = k.b1 * s.m + k.a1 * g;
      s.v = k.b2 * s.v + k.a2 * g * g;
      float root;
      asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(s.v * k.v_unbias));
      return p - k.lr * (__fdividef(s.m * k.m_unbias, root + k.eps) + k.wd * p);
    }
#endif
    return ds::adamw::update(p, g, s, k);
  }
};

/// AdamW's reads and writes, with just enough arithmetic that all of them matter.
struct streams_alone {
  double lr = 1e-3;
  template <class Real> struct state { Real m, v; };
  template <class Real> struct terms { Real lr; };
  DESCENT_HD terms<double> at(std::int64_t) const { return {lr}; }
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.m = s.m + g;
    s.v = s.v + s.m;
    return p - k.lr * s.v;
  }
};

}  // namespace experiments
