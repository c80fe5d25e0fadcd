// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/addresses.cuh>
#include <descent/engine/cuda/controller.cuh>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/kernels.cuh>
#include <descent/engine/cuda/launch.cuh>
#include <descent/engine/cuda/rows.cuh>
#include <descent/engine/cuda/single_rank.hpp>
#include <descent/engine/cuda/stream.hpp>
#include <descent/engine/step/given_state.hpp>
#include <descent/engine/step/memory_guard.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/core/detail/containers.hpp>

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace descent::detail {

/// The part of the CUDA engine that owns device memory, gives kernels a view of it, and copies it.
template <class Plan> struct cuda_storage {
  using rule = typename Plan::rule;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

  cuda_storage(cuda_ranks<Plan>& ranks, cuda_model<Plan>& model, typename Plan::policies const& ps, cudaStream_t s)
      : stream(s), policies(ps), ranks_(ranks), model_(model) {
    require_cuda(cudaGetDevice(&device), "cudaGetDevice");
    if constexpr (has<Plan, kind::memory>) source = {*get<kind::memory>(policies).where, device, stream};
  }

  /// The owned buffers, from element `first` on.
  std::array<owned_buffer, owned_count<Plan>> owned(std::int64_t first) const {
    return owned_buffers<Plan>([&](std::size_t number) { return owned_[number]; }, first);
  }
  void* buffer(std::size_t number) const { return owned(0)[number].at; }
  /// Adds the memory of all elements that the step writes, other than values and gradients.
  void add_ranges(std::vector<memory_range>& ranges, tensors const& where) const {
    if constexpr (Plan::has_given) add_given_ranges<Plan>(ranges, where, given);
    add_owned_ranges<Plan>(ranges, where, owned(0), saved);
  }
  /// These throw std::invalid_argument if the memory cannot be read, or copied, or a step cannot or must not write it.
  void require_input(outside_memory const& m, tensors const& where) {
    require_device_memory(m, device);
    guard_.refuse_overlap(m, where, *this);
  }
  void require_source(outside_memory const& m) const { require_copyable(m); }
  void require_addresses(tensors const& where, std::vector<tensor_addresses> const& addresses) {
    require_device_tensors(where, addresses, device);
    guard_.rebind(where, addresses, *this, policies, rows);
  }
  bool is_initialized() const {
    if constexpr (Plan::has_given) return get<kind::state_memory>(policies).initialized;
    else return false;
  }

  /// The partial sums of the norm as the last read-only pass left them.
  std::vector<double> norm_partials() const {
    device_scope const scope(device);
    double const* there = norm_view().partial;
    std::vector<double> partial(there ? Plan::norm_sums * std::size_t(view.all_chunk_count()) : 0);
    read_back(partial.data(), there, partial.size());
    return partial;
  }

  /// The control block. Throws std::invalid_argument if a source row does not exist. Waits for the stream, once.
  control_block read_for(row_changes<tensors> const& changes) const {
    std::vector<unsigned long long> bad(std::size_t(view.tensor_count), no_bad_row);
    if (enqueue_source_checks(changes, bad_rows_, bad.size(), device, stream))
      require_cuda(cudaMemcpyAsync(bad.data(), bad_rows_, bad.size() * sizeof bad[0], cudaMemcpyDeviceToHost, stream),
                   "cudaMemcpyAsync");
    control_block const c = read_control();
    refuse_bad_rows(changes, bad, stream);
    return c;
  }
  /// Copies the state of the rows that stay, and the state that belongs to no element.
  void take(cuda_storage const& old, row_changes<tensors> const& changes) {
    for (std::size_t t = 0; t < changes.moves.size(); ++t) {
      auto const [o, from] = changes.moves[t];
      if (o < 0) continue;
      auto const& before = changes.old.tensors[std::size_t(o)];
      auto const& x = changes.now.tensors[t];
      auto const to = owned(x.arena), was = old.owned(before.arena);
      for (std::size_t b = 0; b < to.size(); ++b)
        if (to[b].at) gather(to[b], was[b], from, changes.now.columns[t], x.count, stream);
      if constexpr (Plan::per_row_step)
        gather(rows.buffer(t), old.rows.buffer(std::size_t(o)), from, 1, rows_of(changes.now, t), stream);
      if constexpr (Plan::keeps_selection)
        gather(rows.waiting(t), old.rows.waiting(std::size_t(o)), from, 1, rows_of(changes.now, t), stream);
      if constexpr (has_memory<rule> && Plan::unit_per_tensor) copy_one(memories_ + t, old.memories_ + o);
    }
    if constexpr (has_memory<rule> && !Plan::unit_per_tensor)
      for (std::int32_t g = 0; g < view.group_count && g < old.view.group_count; ++g)
        copy_one(memories_ + g, old.memories_ + g);
    copy_one(control, old.control);
  }
  /// Replaces the values, the groups and all owned state of every rank by those of rank `root`.
  template <class Matrices> void broadcast(plain_vector<entry>& groups, int root, Matrices& matrices) {
    ranks_.meet("broadcast()", [&] {
      ranks_.broadcast_values(root);
      if constexpr (Plan::has_given)
        for (std::size_t t = 0; t < given.size(); ++t)
          for (std::size_t b = 0; b < owned_count<Plan>; ++b)
            if (given[t][b]) ranks_.broadcast(given[t][b], counts_[t] * owned(0)[b].size, root);
      auto const all = owned(0);
      for (std::size_t b = 0; b < all.size(); ++b)
        if (all[b].at) {
          std::int64_t const n = Plan::has_matrices && is_slot<Plan>(b) ? rule_elements_ : std::int64_t(arena_);
          ranks_.broadcast(all[b].at, n * all[b].size, root);
        }
      if constexpr (has_memory<rule>) ranks_.broadcast(memories().data(), std::int64_t(memories().size_bytes()), root);
      ranks_.broadcast(control, sizeof(control_block), root);
      ranks_.broadcast_host(groups.data(), std::int64_t(groups.size() * sizeof(entry)), root);
      matrices.broadcast([&](void* x, std::int64_t bytes) { ranks_.broadcast(x, bytes, root); },
                         [&](void* x, std::int64_t bytes) { ranks_.broadcast_host(x, bytes, root); });
    });
  }

  void rebind(std::vector<tensor_addresses> addresses) {
    if constexpr (Plan::has_given)
      for (std::size_t t = 0; t < addresses.size(); ++t)
        if (!is_aligned(given[t])) addresses[t].aligned = addresses[t].value_aligned = false;
    enqueue_addresses(tensors_, !Plan::parallel, addresses, stream);
  }
  void copy(void* to, void const* from, std::size_t bytes) {
    device_scope const scope(device);
    if (bytes) require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
  }
  template <class T> void copy_one(T* to, T const* from) {
    require_cuda(cudaMemcpyAsync(to, from, sizeof(T), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  }
  void make_saved() {
    if (saved || arena_ == 0) return;
    refuse_allocating(stream, "swap_average()");
    more_.emplace_back(arena_ * std::size_t(Plan::largest_value), source);
    saved = more_.back().get();
  }
  void make_norm_partial() {
    std::size_t const bytes = norm_partials_size() * sizeof(double);
    if (norm_partial_ || bytes == 0) return;
    more_.emplace_back(bytes, source);
    norm_partial_ = reinterpret_cast<double*>(more_.back().get());
    require_cuda(cudaMemsetAsync(norm_partial_, 0, bytes, stream), "cudaMemsetAsync");
  }
  /// The view with the partial sums that measure_norm() writes.
  device_view<Plan> norm_view() const {
    device_view<Plan> sums = view;
    if (!Plan::measures) sums.partial = norm_partial_ ? norm_partial_ + met / 2 : nullptr;
    return sums;
  }

  bool capturing() const { return is_capturing(stream); }
  template <class T> void read_back(T* to, T const* from, std::size_t count) const {
    if (count == 0) return;
    if constexpr (Plan::splits) model_.wait();
    if constexpr (Plan::parallel) ranks_.wait();  // with a deadline; the copy to pageable memory would wait without one
    require_cuda(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    filling_ = {};
  }
  control_block const& read_control() const {
    read_back(&reports_->control, control, 1);
    return reports_->control;
  }
  late_report& late() const { return reports_->late; }
  control_view<Plan> controls() const {
    return {policies, step_terms_, step_terms_ ? step_terms_ + 1 : nullptr, factors_, scale, &reports_->late,
            next_memories_, has_elements_, true, {}, members_};
  }

  std::span<memory_of<rule>> memories() const {
    return {memories_, std::size_t(Plan::unit_per_tensor ? view.all_tensor_count() : view.group_count)};
  }

  static constexpr int sums_per_chunk = (Plan::measures ? Plan::norm_sums : 0) + int(Plan::sum_count);

  /// Adds what it needs to the arena.
  void add_to(device_arena& arena, tensors const& where, plain_vector<entry> const& groups,
              std::array<bool, Plan::slots> const& used) {
    rule_chunks = Plan::shards ? where.own.rule_chunks : where.rule_chunks;
    own_chunks = Plan::shards ? std::ssize(where.own.chunks) : where.chunks();
    auto const of_rule = std::size_t(rule_elements<Plan>(where));
    if constexpr (Plan::has_matrices) rule_elements_ = std::int64_t(of_rule);
    auto const& whole = [&]() -> tensors const& {
      if constexpr (Plan::splits) return model_.whole();
      else return where;
    }();
    all_chunks_ = whole.chunks();
    std::size_t const units = Plan::unit_per_tensor ? whole.tensors.size() : groups.size();
    auto const own_size = std::size_t(where.own.size), chunks = std::size_t(whole.chunks());
    arena_ = std::size_t(where.arena);
    has_elements_ = whole.rule_chunks > 0;
    view.chunk_count = where.chunks();
    view.tensor_count = std::int32_t(where.tensors.size());
    view.group_count = std::int32_t(groups.size());
    if constexpr (Plan::has_given) {
      given =
          find_given<Plan>(where, used, policies, [&](outside_memory const& m) { require_device_memory(m, device); });
      auto records = where.tensors;
      for (std::size_t t = 0; t < records.size(); ++t) records[t].aligned &= is_aligned(given[t]);
      arena.add_copy(tensors_, records);
      arena.add_copy(view.given.at, given);
      for (auto const& x : where.tensors) counts_.push_back(x.count);
    } else {
      arena.add_copy(tensors_, where.tensors);
    }
    guard_.start(where, *this, policies);
    arena.add_copy(tensor_of_chunk_, where.tensor_of_chunk);
    arena.add_copy(view.groups, groups);
    arena.add_copy(control, std::array{start_of<Plan>(policies)});
    arena.add(view.units, units);
    arena.add_zeros(partial_, sums_per_chunk * chunks + met);
    if constexpr (Plan::sums) arena.add(view.sum_terms, Plan::sum_terms_per_tensor ? units : groups.size());
    if constexpr (has_memory<rule>) {
      arena.add_copy(memories_, plain_vector<memory_of<rule>>(units));
      arena.add(next_memories_, units);
    }
    if constexpr (Plan::totals_per_tensor)
      arena.add(view.totals, (Plan::norm_sums + Plan::sum_count) * whole.tensors.size());
    if constexpr (Plan::clip_over != scope::model)
      arena.add(factors_, Plan::clip_over == scope::tensor ? whole.tensors.size() : groups.size());
    members_.add_to(arena, whole.tensors, groups.size());
    if constexpr (Plan::clips_rows) {
      all_row_pieces const all = model_.rows_of(where);
      row_sums = Plan::norm_sums * all.pieces;
      shared_row_sums = Plan::norm_sums * all.shared;
      arena.add_copy(view.clipped.of, all.of);
      if constexpr (Plan::splits) arena.add_copy(view.clipped.parts, all.parts);
      arena.add(view.clipped.partial, std::size_t(row_sums));
      arena.add_zeros(view.clipped.factors, std::size_t(all.rows + packet_size));
    }
    if constexpr (Plan::has_step_terms) arena.add(step_terms_, 2);
    each_buffer<Plan>([&]<std::size_t I, class T>(char const*) {
      std::size_t const n = is_slot<Plan>(I) ? of_rule : own_size;
      arena.add(owned_[I], is_used<Plan>(used, I) && !is_given(I) ? n * sizeof(T) : 0);
    });
    if constexpr (has<Plan, kind::perturbation>) {
      arena.add(saved, arena_ * std::size_t(Plan::largest_value));
      arena.add(ascent, 1);
    }
    if constexpr (Plan::is_sam && !Plan::measures) arena.add_zeros(norm_partial_, norm_partials_size());
    if constexpr (Plan::selects_rows) rows.add_to(arena, where, groups.size());
    if constexpr (!Plan::parallel && !Plan::has_matrices) arena.add(bad_rows_, where.tensors.size());
    reports_ = pinned<reports>();
  }
  /// Allocates the memory and writes its first contents.
  void allocate(device_arena arena) {
    filling_ = std::move(arena);
    memory_ = filling_.allocate(source);
    filling_.fill(stream);
  }
  /// Completes the view.
  void start() {
    view.tensors = tensors_;
    view.tensor_of_chunk = tensor_of_chunk_;
    using index = owned_index<Plan>;
    auto const show = [&]<class T>(std::size_t number, T*& p) { p = reinterpret_cast<T*>(owned_[number]); };
    show(index::master, view.master);
    view.control = control;
    view.memories = memories_;
    view.partial = partial_ ? partial_ + met / 2 : nullptr;
    model_.show_in(view);
    if constexpr (Plan::parallel) ranks_.show_in(view);
    if constexpr (Plan::has_extras) {
      each_kept<Plan>([&]<std::size_t I, class>(char const*) {
        if constexpr (I != index::master) show(I, view.extra.buffers.template at<I>());
      });
    }
    if constexpr (Plan::has_step_terms) view.extra.step_terms = step_terms_;
    if constexpr (Plan::selects_rows) {
      rows.start(device, source, stream);
      view.extra.rows = rows.records();
      view.extra.rules = rows.rules();
    }
    scale = &control->scale;
    if constexpr (Plan::shares_scale) scale = &get<kind::loss_scale>(policies).shared->state;
    for (std::size_t i = 0; i != Plan::slots; ++i) view.slot[i] = owned_[i];
  }

  cudaStream_t stream;
  int device = 0;
  std::int64_t row_sums = 0,
               shared_row_sums = 0;  // partial sums of clipped rows, and the first of them that ranks add up
  device_source source;
  typename Plan::policies policies;
  std::conditional_t<Plan::has_given, given_state<Plan>, no_given> given;
  control_block* control = nullptr;
  double* ascent = nullptr;  // the factor of sam
  std::byte* saved = nullptr;  // the values that ascend() or swap_in() replaces
  std::int64_t rule_chunks = 0, own_chunks = 0;
  std::conditional_t<Plan::selects_rows, cuda_rows<Plan>, no_rows> rows;
  device_view<Plan> view{};
  loss_scale_state const* scale = nullptr;

 private:
  bool is_given([[maybe_unused]] std::size_t number) const {
    if constexpr (Plan::has_given) return detail::is_given<Plan>(given, number);
    else return false;
  }
  static bool is_aligned(std::array<void*, owned_count<Plan>> const& at) {
    for (void const* p : at)
      if (!packets_aligned(p)) return false;
    return true;
  }
  std::size_t norm_partials_size() const { return Plan::norm_sums * std::size_t(all_chunks_) + met; }

  memory_guard<Plan> guard_;
  static constexpr std::size_t met = Plan::splits ? 2 * model_met : 0;
  cuda_ranks<Plan>& ranks_;
  cuda_model<Plan>& model_;
  std::vector<device_array<std::byte>> memory_, more_;  // at construction, and when first needed
  mutable device_arena filling_;  // kept until its copy is done
  tensor_record<typename Plan::value, typename Plan::gradient>* tensors_ = nullptr;
  std::int32_t* tensor_of_chunk_ = nullptr;
  memory_of<rule>*memories_ = nullptr, *next_memories_ = nullptr;
  group_tensors_view<Plan> members_;
  double *partial_ = nullptr, *factors_ = nullptr, *norm_partial_ = nullptr;
  unsigned long long* bad_rows_ = nullptr;  // the first row of each tensor whose source does not exist
  step_terms_of<Plan>* step_terms_ = nullptr;  // of this step, and of the sums in the next step
  std::array<std::byte*, owned_count<Plan>> owned_{};
  struct reports {
    control_block control;
    late_report late;
  };
  sole_handle<reports*, pinned_delete> reports_;
  std::size_t arena_ = 0;
  std::int64_t all_chunks_ = 0, rule_elements_ = 0;  // of the model; with matrices
  std::vector<std::int64_t> counts_;  // of the tensors, if some state is in the caller's memory
  bool has_elements_ = true;
};

}  // namespace descent::detail
