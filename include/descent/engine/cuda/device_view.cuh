// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/engine/step/collective_sums.hpp>
#include <descent/engine/step/controller.hpp>
#include <descent/engine/step/given_state.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/engine/step/packet.hpp>
#include <descent/engine/step/row_mask.hpp>
#include <descent/engine/step/terms.hpp>

#include <array>
#include <cstddef>

/// The kernels' view of device memory.
namespace descent::detail {

/// The newest control blocks, in pinned memory. Each call first marks the previous one as complete, because its kernel
/// has ended, and writes its own block last.
struct late_report {
  control_block slot[3];
  std::int64_t complete = 0;

  DESCENT_HD control_block& of(std::int64_t call) { return slot[call % 3]; }
  /// Earlier writes reach the host before `complete` does. Later writes do not move before the fence.
  DESCENT_HD void complete_until(std::int64_t call) {
#if defined(__CUDA_ARCH__)
    __threadfence_system();
#else
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
    static_cast<std::int64_t volatile&>(complete) = call;
  }
  void start(control_block const& c) {
    of(c.calls) = c;
    complete = c.calls;
  }
};

/// Writes the report of the newest call. All threads of a block call it.
__device__ inline void report_late(late_report& late, control_block const& control, loss_scale_state const& scale) {
  using word = std::uint32_t;
  static_assert(sizeof(control_block) % sizeof(word) == 0 && offsetof(control_block, scale) % sizeof(word) == 0);
  constexpr int first = int(offsetof(control_block, scale) / sizeof(word)),
                last = first + int(sizeof scale / sizeof(word));
  auto const* const of_control = reinterpret_cast<word const*>(&control);
  auto const* const of_scale = reinterpret_cast<word const*>(&scale) - first;
  auto* const to = reinterpret_cast<word*>(&late.of(control.calls));
  for (int i = int(threadIdx.x); i < int(sizeof control / sizeof(word)); i += int(blockDim.x))
    to[i] = (first <= i && i < last ? of_scale : of_control)[i];
}

/// The block of the newest call that is known to be complete. Meanwhile the device may write the other slots, and it
/// reuses this slot once the second call after this one is complete.
inline control_block newest(late_report const& late) {
  auto const volatile& complete = late.complete;
  for (;;) {
    std::int64_t const call = complete;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    control_block const c = late.slot[call % 3];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (complete - call <= 1) return c;
  }
}

/// What only some policies need. It is empty for the others, so it does not change their kernels.
template <class Plan, bool = Plan::has_extras || Plan::has_step_terms || Plan::selects_rows> struct extra_view {};
template <class Plan> struct extra_view<Plan, true> {
  extra_buffers<Plan> buffers;
  step_terms_of<Plan> const* step_terms;
  row_record* rows;            // of each tensor
  typename Plan::rule* rules;  // of each group, with its scheduled fields, if rows count their own updates
};

/// Writes what ranks compare in the meeting that is about to begin.
inline __device__ void describe(comm_progress& p, std::uint64_t call, control_block const& c,
                                loss_scale_state const& scale, double weight = -1) {
  p.call = call, p.step = c.step, p.skipped = c.skipped, p.unscaled = c.unscaled;
  p.scale = double(scale.scale), p.plateau = c.plateau.value, p.sweep = c.sweep, p.weight = weight;
}
/// enter() begins a meeting of ranks. leave() ends it, if there is one.
inline __device__ void enter(comm_progress& p, int meeting) {
  p.meeting = meeting;
  __threadfence_system();
  ++p.begun;
}
inline __device__ void leave(comm_progress& p) { p.ended = p.begun; }
inline __device__ void leave(comm_progress& p, collective_sums const& now) {
  if (now.differ()) p.differ = 1;
  __threadfence_system();
  leave(p);
}

/// The values of a tensor that starts at `arena`, in the buffer of all ranks' values. Each element has room for the
/// largest type.
template <class Value>
__device__ Value* staged(std::byte* values, arena_offset const& p, std::int64_t arena, std::int64_t largest) {
  std::int64_t const begin = p.first > arena ? p.first - arena : 0;  // the tensor's first element in that part
  return reinterpret_cast<Value*>(values + (p.part + arena + begin - p.first) * largest) - begin;
}

/// What only plans with ranks need: the sum of the gradients, and which elements this rank owns.
template <class Plan, bool = Plan::parallel> struct rank_view {};
template <class Plan> struct rank_view<Plan, true> {
  typename Plan::gradient* sum;
  std::byte* values;           // of this rank, where they are changed
  arena_offset const* arena_offsets;  // of each tensor's elements in the sum and in the owned buffers
  arena_offset const* rule_offsets;   // in the state of the rule, if it differs
  std::int64_t const* chunks;  // of this rank
  arena_offset const* value_offsets;  // of each tensor's elements in `values`, with matrices
  sent_parts<Plan> sent = {};
};

/// The ranks of a model_parallel{}: who is in which call, besides the sums over them in model_view::met().
struct model_calls {
  double call = 0, ranks = 1;
  std::uint64_t groups = 0;  // the part of `call` that stands for the groups

  /// Whether all ranks are in these sums, in the same call. An aborted collective leaves arbitrary values.
  DESCENT_HD bool complete(double const* met) const { return same(met[0], ranks) && same(met[1], call * ranks); }
  DESCENT_HD bool differ(double const* met) const { return same(met[0], ranks) && !same(met[1], call * ranks); }

 private:
  DESCENT_HD static bool same(double a, double b) {
    return __builtin_bit_cast(std::uint64_t, a) == __builtin_bit_cast(std::uint64_t, b);
  }
};

inline __device__ void leave(comm_progress& p, model_calls const& calls, double const* met) {
  if (calls.differ(met)) p.differ = 1;
  __threadfence_system();
  leave(p);
}

/// What only plans with a part of a model need: the whole model, and where this rank's part is in it.
template <class Plan, bool = Plan::splits> struct model_view {};
template <class Plan> struct model_view<Plan, true> {
  tensor_record<typename Plan::value, typename Plan::gradient> const* tensors;  // of the whole, without addresses
  std::int64_t chunk_count;
  std::int32_t tensor_count;
  std::int32_t const* number;  // of each tensor of this rank, in the whole
  std::int64_t const* shift;   // from the numbers of its chunks to those in the whole
  std::int64_t const* element_shift;  // the same for its elements
  std::uint8_t const* counts;  // whether this rank adds it to sums
  model_calls* calls;
  control_block* before;  // the step
  comm_progress* progress;
};
/// Before the partial sums and after them are two numbers: how many ranks are in them, and the sum of their calls.
inline constexpr int model_met = 2;

/// Where state is in the caller's memory: [tensor][owned_index], null where it is not.
template <class Plan, bool = Plan::has_given> struct given_view {};
template <class Plan> struct given_view<Plan, true> { std::array<void*, owned_count<Plan>>* at; };

/// Pointers to everything in device memory. Every kernel takes the view by value.
template <class Plan> struct device_view {
  using rule = typename Plan::rule;
  using real = typename Plan::real;

  tensor_record<typename Plan::value, typename Plan::gradient> const* tensors;
  std::int32_t const* tensor_of_chunk;
  std::int64_t chunk_count;
  std::int32_t tensor_count, group_count;
  typename Plan::master_or_value* master;
  void* slot[Plan::slots + 1];
  control_block* control;
  group_entry<rule>* groups;
  unit_terms_of<Plan>* units;    // terms of the update, for each group or tensor
  unit_terms_of<Plan>* sum_terms;  // terms of the sums in the next step, for each group or tensor
  memory_of<rule>* memories;  // for each unit
  double* partial;            // [sum][chunk]: those of the norm if measured, then the rule's
  double* totals;             // [sum][tensor], the same sums
  extra_view<Plan> extra;
  rank_view<Plan> ranks;
  row_clip_view<Plan> clipped = {};
  given_view<Plan> given = {};
  model_view<Plan> model = {};

  /// The tensors and chunks of the model, of which this rank may have a part.
  DESCENT_HD auto const* all_tensors() const {
    if constexpr (Plan::splits) return model.tensors;
    else return tensors;
  }
  DESCENT_HD std::int32_t all_tensor_count() const {
    if constexpr (Plan::splits) return model.tensor_count;
    else return tensor_count;
  }
  DESCENT_HD std::int64_t all_chunk_count() const {
    if constexpr (Plan::splits) return model.chunk_count;
    else return chunk_count;
  }
  __device__ std::int32_t number_of(std::int32_t tensor) const {
    if constexpr (Plan::splits) return model.number[tensor];
    else return tensor;
  }
  __device__ std::int64_t number_of_chunk(std::int64_t chunk, [[maybe_unused]] std::int32_t tensor) const {
    if constexpr (Plan::splits) return chunk + model.shift[tensor];
    else return chunk;
  }
  /// Who was in the partial sums of the norm, and of the rule in a pass of its own.
  DESCENT_HD double* met() const { return partial - model_met; }
  DESCENT_HD double* sums_met() const {
    return partial + ((Plan::measures ? Plan::norm_sums : 0) + int(Plan::sum_count)) * all_chunk_count();
  }

  template <class Typed = Plan> __device__ buffers<Typed> of(std::int32_t tensor) const {
    auto const t = tensors[tensor];
    std::int64_t at = t.arena;  // in the owned buffers
    if constexpr (Plan::shards) at = ranks.arena_offsets[tensor](t.arena);
    buffers<Typed> x{static_cast<typename Typed::value*>(t.value),
                     static_cast<typename Typed::gradient*>(t.gradient), nullptr, {}, {}};
    if constexpr (Plan::parallel && Plan::overlaps) x.gradient = ranks.sum + ranks.arena_offsets[tensor](t.arena);
    else if constexpr (Plan::parallel) x.gradient = ranks.sum + at;
    if constexpr (Plan::adds_when_read) x.sent = {ranks.sent.first + at, ranks.sent.stride, ranks.sent.ranks};
    if constexpr (Plan::shards)
      x.value = staged<typename Typed::value>(ranks.values,
                                              (Plan::has_matrices ? ranks.value_offsets : ranks.arena_offsets)[tensor],
                                              t.arena, Plan::largest_value);
    if constexpr (Plan::clips_rows)
      if (row_pieces const& rows = clipped.of[number_of(tensor)]; rows.units)
        x.rows = {clipped.factors + rows.first_row, rows.columns, rows.inverse, 0};
    if constexpr (Typed::has_master) x.master = master + at;
    else x.master = x.value;
    if constexpr (Plan::has_extras) x.extra = extra.buffers.template from<Typed>(at, t.arena);
    if constexpr (Plan::has_extras && Plan::splits) x.extra.shift = model.element_shift[tensor];
    if constexpr (Plan::shards && Plan::has_matrices) at = ranks.rule_offsets[tensor](t.arena);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((x.slot[I] = has_optional_state<rule> && !slot[I] ? nullptr
                                                         : static_cast<typename Plan::template slot<I>*>(slot[I]) + at),
       ...);
    }(typename Plan::every_slot{});
    if constexpr (Plan::has_given) use_given(x, reinterpret_cast<void* const*>(given.at + tensor));
    return x;
  }
  /// The i-th chunk that this rank updates.
  __device__ std::int64_t own_chunk(std::int64_t i) const {
    if constexpr (Plan::shards) return ranks.chunks[i];
    else return i;
  }

  /// Calls f<Typed>(buffers) with the tensor's types.
  template <class F> __device__ void with(std::int32_t tensor, F const& f) const {
    if constexpr (Plan::pairs == 1) f(of(tensor));
    else with_types<Plan>(tensors[tensor].types, [&]<class Typed>() { f(of<Typed>(tensor)); });
  }
};

/// The matrix rule of each group, and which tensors are matrices.
template <class Plan, bool = Plan::has_matrices> struct matrix_rules_view {};
template <class Plan> struct matrix_rules_view<Plan, true> {
  std::int32_t const* tensor;
  std::int64_t const* columns;
  int count;
  typename Plan::matrix_rule const* rules;
};

/// What only the read-only passes and the controller need.
template <class Plan> struct control_view {
  typename Plan::policies policies;
  step_terms_of<Plan>*step_terms, *sum_step_terms;
  double* factors;  // of groups or tensors, if each is clipped separately
  loss_scale_state const* scale;
  late_report* late;  // in host memory
  memory_of<typename Plan::rule>* next_memories;  // after the update
  bool has_elements;                              // whether any element follows the rule
  bool reports = true;                            // whether the controller writes the report, not the update
  matrix_rules_view<Plan> matrices = {};
  group_tensors_view<Plan> members = {};
};

}  // namespace descent::detail
