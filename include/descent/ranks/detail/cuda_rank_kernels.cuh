// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/kernels.cuh>
#include <descent/engine/cuda/launch.cuh>
#include <descent/ranks/detail/divergence.hpp>
#include <descent/engine/step/collective_sums.hpp>

#include <array>
#include <cstdint>
#include <vector>

/// The kernels that exchange data with other ranks.
namespace descent::detail {

/// Writes gradients to the wire, in its type and divided to keep their sum from overflowing. Absent ones become zeros.
template <class Callers> struct send_packets {
  static constexpr int blocks = packet_blocks<Callers>;
  static constexpr bool all_chunks = true;
  device_view<Callers> v;
  typename Callers::gradient_sum::wire* wire;
  arena_offset whole;                 // of the bucket
  arena_offset const* arena_offsets;  // of each chunk, with shards
  std::int64_t first_chunk;
  double wire_divisor;
  bool zero, absent;
  step_call call;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    using real = typename Callers::real;
    auto const& t = v.tensors[tensor];
    std::int64_t at;
    if constexpr (Callers::gradient_sum::shards) at = arena_offsets[t.first_chunk + i / chunk_size](t.arena + i);
    else at = whole(t.arena + i);
    bool const reads = !absent && !adds_nothing<Callers>(*v.control, as_counted(*v.control, call));
    bool const then_zero = zero && !absent && !keeps_gradients(*v.control, call) && !v.groups[t.group].frozen;
    if (!reads) {
      real const none[M] = {};
      write(wire + at, none, packet_extent{M, true});
      if (!then_zero) return;
    }
    real const inverse = real(1 / wire_divisor);
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      if (reads) {
        real g[M];
        read(g, x.gradient + i, packet_extent{M, true});
        for (auto& one : g) one = one * inverse;
        write(wire + at, g, packet_extent{M, true});
      }
      if (then_zero) zero_packet<Typed, real, M>(x, i, {M, true});
    });
  }
};

/// Begin and end a meeting of ranks where no other kernel does.
template <class Progress> __global__ void enter_bucket(Progress* p, int meeting) { enter(*p, meeting); }
template <class Progress> __global__ void leave_bucket(Progress* p) { leave(*p); }

/// Runs before a reduction. Sets this rank's contribution to the sums over ranks.
template <class Plan>
__global__ void enter_reduction(device_view<Plan> v, control_view<Plan> w, step_call call, std::uint64_t what,
                                int meeting, control_block* before) {
  auto const& parallel = get<kind::parallel>(w.policies);
  describe(*parallel.progress, what, *v.control, *w.scale);
  enter(*parallel.progress, meeting);
  *before = *v.control;
  call = as_counted(*v.control, call);
  double loss = 0;
  if constexpr (has_loss<typename Plan::rule>) loss = *get<kind::loss>(w.policies).where;
  parallel.now->enter(weight_of<Plan>(*v.control, call), loss,
                      hash_of_call(what, *v.control, *w.scale, parallel.now->groups));
}
template <class Progress> __global__ void leave_collective(Progress* p, collective_sums const* now) { leave(*p, *now); }

/// Runs before a read-only pass over a part of a model. Sets this rank's contribution to who is in which call. Begins
/// a meeting if `meeting` is not negative.
template <class Plan>
__global__ void enter_model(device_view<Plan> v, control_view<Plan> w, step_call call, std::uint64_t what,
                            int meeting) {
  model_calls& calls = *v.model.calls;
  double* const met = meeting < 0 ? v.sums_met() : v.met();
  if (meeting >= 0) {
    call = as_counted(*v.control, call);
    describe(*v.model.progress, what, *v.control, *w.scale, weight_in_model<Plan>(*v.control, w.policies, call));
    enter(*v.model.progress, meeting);
    *v.model.before = *v.control;
    what += hash_of_weight<Plan>(*v.control, w.policies, call);
    calls.call = hash_of_call(what, *v.control, *w.scale, calls.groups);
  }
  met[0] = 1, met[1] = calls.call;
  if constexpr (Plan::parallel)
    if (!get<kind::parallel>(w.policies).now->complete()) met[0] = 0;  // its gradients are not those of all ranks
}
template <class Plan> __global__ void leave_model(device_view<Plan> v) {
  leave(*v.model.progress, *v.model.calls, v.met());
}

/// to[i] <- the sum over ranks of their element i, in the order of the ranks.
template <class Sum, class Wire>
__global__ __launch_bounds__(packet_threads) void add_parts(Sum* to, Wire const* parts, std::int64_t n, int ranks) {
  std::int64_t const i = (std::int64_t(blockIdx.x) * packet_threads + threadIdx.x) * packet_size;
  if (i >= n) return;
  constexpr packet_extent whole{int(packet_size), true};
  Sum sum[packet_size];
  read_sum(sum, parts + i, n, ranks, whole);
  write(to + i, sum, whole);
}

/// The buffers over the arena that print_chunks() reads.
template <std::size_t Count> struct printed_buffers { owned_buffer buffer[Count]; };
/// A tensor's buffer in the caller's memory, or null.
template <class Plan>
__device__ void const* given_at([[maybe_unused]] device_view<Plan> const& v, [[maybe_unused]] std::int32_t tensor,
                                [[maybe_unused]] std::size_t buffer) {
  if constexpr (Plan::has_given) return reinterpret_cast<void* const*>(v.given.at + tensor)[buffer];
  else return nullptr;
}
/// prints[tensor] <- the fingerprint of its value, followed by those of its buffers.
template <class Plan>
__global__ __launch_bounds__(packet_threads) void print_chunks(device_view<Plan> v,
                                                               printed_buffers<owned_count<Plan>> owned,
                                                               unsigned long long* prints) {
  __shared__ unsigned long long of_warps[packet_threads / warp];
  std::int32_t const tensor = v.tensor_of_chunk[blockIdx.x];
  auto const& t = v.tensors[tensor];
  auto const [begin, size] = span_of(blockIdx.x, t);
  auto* to = prints + tensor * std::int64_t(prints_of_tensor<Plan>);
  auto const add = [&, begin = begin, size = size](void const* buffer, std::int64_t first, std::int64_t element) {
    unsigned long long sum = 0;
    for (std::int64_t i = begin + threadIdx.x; buffer && i < begin + size; i += packet_threads)
      sum += print_of(bits_at(buffer, first + i, element), i);
    sum = reduce_block(of_warps, sum, [](auto a, auto b) { return a + b; });
    if (threadIdx.x == 0) atomicAdd(to, sum);
    __syncthreads();
    ++to;
  };
  with_types<Plan>(t.types, [&]<class Typed>() {
    add(t.value, 0, sizeof(typename Typed::value));
    if constexpr (!Plan::shards) {
      for (std::size_t b = 0; b < owned_count<Plan>; ++b)
        if (void const* const given = given_at(v, tensor, b)) add(given, 0, owned.buffer[b].size);
        else
          add(has_owned<Typed>(b) && !(t.matrix && is_slot<Plan>(b)) ? owned.buffer[b].at : nullptr, t.arena,
              owned.buffer[b].size);
    }
  });
}

/// The fingerprints of all tensors' buffers, which `owned` lists. Waits for the stream, by wait().
template <class Plan, class Wait>
std::vector<std::uint64_t> prints_of(device_view<Plan> const& v,
                                     std::array<owned_buffer, owned_count<Plan>> const& owned, cudaStream_t s,
                                     Wait const& wait) {
  std::vector<std::uint64_t> all(std::size_t(v.tensor_count) * prints_of_tensor<Plan>);
  device_array<std::uint64_t> const there(all, s);
  printed_buffers<owned_count<Plan>> buffers{};
  for (std::size_t b = 0; b < owned.size(); ++b) buffers.buffer[b] = owned[b];
  launch(print_chunks<Plan>, v.chunk_count, packet_threads, s, v, buffers,
         reinterpret_cast<unsigned long long*>(there.get()));
  wait();
  there.read(all.data(), s, all.size());
  return all;
}

/// Copies this rank's values to where the step changes them.
template <class Plan> struct stage_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  device_view<Plan> v;
  __device__ bool wants(std::int32_t) const { return true; }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    v.with(tensor, [&]<class Typed>(buffers<Typed> const& x) {
      typename Plan::real p[M];
      read(p, static_cast<typename Typed::value const*>(v.tensors[tensor].value) + i, packet_extent{M, true});
      write(x.value + i, p, packet_extent{M, true});
    });
  }
};

/// The number of a gather. Its sum over ranks is valid only if every rank had received all values before. Numbers are
/// not reused, because an aborted collective may leave the sum of an earlier one.
struct gather_ticket {
  double sum, own;
  __device__ bool valid(int ranks) const { return sum == own * ranks; }
};
/// Runs before a gather. Takes the next number.
template <class Progress> __global__ void enter_gather(gather_ticket* ticket, Progress* p, int meeting) {
  enter(*p, meeting);
  ticket->sum = ticket->own += 1;
}

/// Copies the values of all ranks to their tensors, if all ranks have received them.
template <class Plan> struct commit_packets {
  static constexpr int blocks = packet_blocks<Plan>;
  static constexpr bool all_chunks = true;
  device_view<Plan> v;
  std::byte* values;
  arena_offset const* arena_offsets;
  gather_ticket const* ticket;
  int ranks;
  __device__ bool wants(std::int32_t) const { return ticket->valid(ranks); }
  template <int M>
  __device__ void operator()(std::int32_t tensor, std::int64_t i, std::integral_constant<int, M>) const {
    auto const& t = v.tensors[tensor];
    arena_offset const p = arena_offsets[t.first_chunk + i / chunk_size];
    v.with(tensor, [&]<class Typed>(buffers<Typed> const&) {
      using value = typename Typed::value;
      typename Plan::real x[M];
      read(x, staged<value>(values, p, t.arena, Plan::largest_value) + i, packet_extent{M, true});
      write(static_cast<value*>(t.value) + i, x, packet_extent{M, true});
    });
  }
};
/// Ends a gather. If a step's gather failed, restores the control block from before the step and marks it as lost.
template <class Plan>
__global__ void leave_gather(device_view<Plan> v, gather_ticket const* ticket, int ranks, comm_progress* p,
                             control_block const* before) {
  if (before && !ticket->valid(ranks)) {
    *v.control = *before;
    v.control->lost = true;
  }
  leave(*p);
}

}  // namespace descent::detail
