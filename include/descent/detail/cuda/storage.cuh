// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/cuda/addresses.cuh>
#include <descent/detail/cuda/controller.cuh>
#include <descent/detail/cuda/device_memory.hpp>
#include <descent/detail/cuda/kernels.cuh>
#include <descent/detail/cuda/launch.cuh>
#include <descent/detail/cuda/ranks.cuh>
#include <descent/detail/cuda/rows.cuh>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace descent::detail {

/// The part of the CUDA engine that owns device memory, gives kernels a view of it, and copies it.
template <class Plan> struct cuda_storage {
  using rule = typename Plan::rule;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

  cuda_storage(cuda_ranks<Plan>& ranks, typename Plan::policies const& policies, cudaStream_t stream)
      : stream(stream), policies(policies), ranks_(ranks) {
    require_cuda(cudaGetDevice(&device), "cudaGetDevice");
  }

  /// The owned buffers, from element `first` on.
  std::array<owned_buffer, Plan::slots + 4> owned(std::int64_t first) const {
    auto const of = [&](void* p, std::int64_t size) {
      return owned_buffer{p ? static_cast<std::byte*>(p) + first * size : nullptr, size};
    };
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array{of(slot_[I].get(), bytes_of<typename Plan::template slot<I>>)..., of(remainder_.get(), 2),
                        of(master_.get(), bytes_of<typename Plan::master>),
                        of(average_.get(), sizeof(typename Plan::real)), of(slow_.get(), sizeof(typename Plan::slow))};
    }(typename Plan::every_slot{});
  }
  void* master() const { return master_.get(); }
  void* remainder() const { return remainder_.get(); }
  void* average() const { return average_.get(); }
  void* slow() const { return slow_.get(); }
  void* slot(std::size_t i) const { return slot_[i].get(); }

  /// The partial sums of the norm as the last read-only pass left them.
  std::vector<double> norm_partials() const {
    device_scope const scope(device);
    double const* there = Plan::measures ? partial_.get() : norm_partial_.get();
    std::vector<double> partial(there ? Plan::norm_sums * std::size_t(view.chunk_count) : 0);
    read_back(partial.data(), there, partial.size());
    return partial;
  }

  /// Copies the state of the rows that stay, and the state that belongs to no element.
  void take(cuda_storage const& old, row_changes<tensors> const& changes) {
    for (std::size_t t = 0; t < changes.moves.size(); ++t) {
      auto const [o, from] = changes.moves[t];
      if (o < 0) continue;
      auto const& before = changes.old.tensors[std::size_t(o)];
      auto const& x = changes.now.tensors[t];
      auto const to = owned(x.arena), source = old.owned(before.arena);
      for (std::size_t b = 0; b < to.size(); ++b)
        if (to[b].at) gather(to[b], source[b], from, changes.now.columns[t], x.count, stream);
      if constexpr (Plan::per_row_step)
        gather(rows.buffer(t), old.rows.buffer(std::size_t(o)), from, 1, rows_of(changes.now, t), stream);
      if constexpr (has_memory<rule> && Plan::unit_per_tensor) copy_one(memories_.get() + t, old.memories_.get() + o);
    }
    if constexpr (has_memory<rule> && !Plan::unit_per_tensor)
      for (std::int32_t g = 0; g < std::min(view.group_count, old.view.group_count); ++g)
        copy_one(memories_.get() + g, old.memories_.get() + g);
    copy_one(control.get(), old.control.get());
  }
  /// Replaces the values, the groups and all owned state of every rank by those of rank `root`.
  void broadcast(std::vector<entry>& groups, int root) {
    ranks_.meet("broadcast()", [&] {
      ranks_.broadcast_values(root);
      for (owned_buffer const& b : owned(0))
        if (b.at) ranks_.broadcast(b.at, std::int64_t(arena_) * b.size, root);
      if constexpr (has_memory<rule>) ranks_.broadcast(memories().data(), std::int64_t(memories().size_bytes()), root);
      ranks_.broadcast(control.get(), sizeof(control_block), root);
      ranks_.broadcast_host(groups.data(), std::int64_t(groups.size() * sizeof(entry)), root);
    });
  }
  /// The fingerprints of all tensors' buffers. Waits for the stream.
  std::vector<std::uint64_t> prints() const {
    std::vector<std::uint64_t> all(std::size_t(view.tensor_count) * prints_of_tensor<Plan>);
    device_array<std::uint64_t> const there(all, stream);
    printed<Plan::slots + 4> buffers{};
    std::ranges::copy(owned(0), buffers.buffer);
    launch(print_chunks<Plan>, view.chunk_count, packet_threads, stream, view, buffers,
           reinterpret_cast<unsigned long long*>(there.get()));
    read_back(all.data(), there.get(), all.size());
    return all;
  }

  void rebind(std::vector<tensor_addresses> const& addresses) {
    enqueue_addresses(tensors_.get(), !Plan::parallel, addresses, stream);
  }
  void copy(void* to, void const* from, std::size_t bytes) {
    device_scope const scope(device);
    if (bytes) require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
  }
  template <class T> void copy_one(T* to, T const* from) {
    require_cuda(cudaMemcpyAsync(to, from, sizeof(T), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  }
  void make_saved() {
    if (!saved.get()) saved = device_array<std::byte>(arena_ * std::size_t(Plan::largest_value));
  }
  void make_norm_partial() {
    if (norm_partial_.get()) return;
    std::size_t const count = Plan::norm_sums * std::size_t(view.chunk_count);
    norm_partial_ = device_array<double>(count);
    if (count) require_cuda(cudaMemsetAsync(norm_partial_.get(), 0, count * sizeof(double), stream), "cudaMemsetAsync");
  }
  /// The view with the partial sums that measure_norm() writes.
  device_view<Plan> norm_view() const {
    device_view<Plan> sums = view;
    if (!Plan::measures) sums.partial = norm_partial_.get();
    return sums;
  }

  /// Calls f(partial sums, count) for each array that a read-only pass writes and ranks add up.
  template <measure What, class F> void each_partial(F const& f) const {
    device_view<Plan> const sums = norm_view();
    constexpr int first = What == measure::sums ? Plan::norm_sums : 0;
    f(sums.partial + first * sums.chunk_count, std::int64_t(measured<Plan, What>) * sums.chunk_count);
    if constexpr (Plan::clips_rows && What != measure::sums)
      if (sums.clipped.pieces > 0) f(sums.clipped.partial, Plan::norm_sums * sums.clipped.pieces);
  }

  bool capturing() const {
    cudaStreamCaptureStatus status;
    require_cuda(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }

  template <class T> void read_back(T* to, T const* from, std::size_t count) const {
    if (count == 0) return;
    if constexpr (Plan::parallel) ranks_.wait();  // with a deadline; the copy to pageable memory would wait without one
    require_cuda(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }

  control_view<Plan> controls() const {
    return {policies, step_terms_.get(), step_terms_.get() + 1, factors_.get(),
            scale, late.get(), next_memories_.get(), has_elements_};
  }

  std::span<memory_of<rule>> memories() const {
    return {memories_.get(), std::size_t(Plan::unit_per_tensor ? view.tensor_count : view.group_count)};
  }

  static constexpr int sums_per_chunk = (Plan::measures ? Plan::norm_sums : 0) + int(Plan::sum_count);

  void allocate(tensors const& where, std::vector<entry> const& groups, std::array<bool, Plan::slots> const& used) {
    rule_chunks = Plan::shards ? std::ssize(where.own.chunks) : where.rule_chunks;
    own_chunks = Plan::shards ? std::ssize(where.own.chunks) : where.chunks();
    auto const rule_arena = std::size_t(Plan::shards ? where.own.size : where.rule_arena);
    std::size_t const units = Plan::unit_per_tensor ? where.tensors.size() : groups.size();
    auto const arena = std::size_t(where.own.size), chunks = std::size_t(where.chunks());
    arena_ = std::size_t(where.arena);
    has_elements_ = where.rule_chunks > 0;
    tensors_ = {where.tensors, stream};
    tensor_of_chunk_ = {where.tensor_of_chunk, stream};
    groups_ = {groups, stream};
    control = {std::array{start_of<Plan>(policies)}, stream};
    units_ = device_array<unit_terms<rule, typename Plan::real>>(units);
    partial_ = {std::vector<double>(sums_per_chunk * chunks), stream};
    if constexpr (Plan::sums)
      sum_terms_ =
          device_array<unit_terms<rule, typename Plan::real>>(Plan::sum_terms_per_tensor ? units : groups.size());
    if constexpr (has_memory<rule>) {
      memories_ = {std::vector<memory_of<rule>>(units), stream};
      next_memories_ = device_array<memory_of<rule>>(units);
    }
    if constexpr (Plan::totals_per_tensor)
      totals_ = device_array<double>((Plan::norm_sums + Plan::sum_count) * where.tensors.size());
    if constexpr (Plan::clip_over != scope::model)
      factors_ = device_array<double>(Plan::clip_over == scope::tensor ? where.tensors.size() : groups.size());
    if constexpr (Plan::clips_rows) {
      all_row_pieces const all(where);
      row_pieces_ = {all.of, stream};
      piece_partial_ = device_array<double>(std::size_t(Plan::norm_sums * all.pieces));
      row_factors_ = {std::vector<typename Plan::real>(std::size_t(all.rows + packet_size)), stream};
      view.clipped = {row_pieces_.get(), piece_partial_.get(), row_factors_.get(), all.pieces};
    }
    if constexpr (Plan::has_step_terms) step_terms_ = device_array<step_terms_of<Plan>>(2);
    if constexpr (Plan::has_remainder) remainder_ = device_array<std::uint16_t>(arena);
    if constexpr (has<Plan, kind::average>) average_ = device_array<typename Plan::real>(arena);
    if constexpr (has<Plan, kind::lookahead>) slow_ = device_array<typename Plan::slow>(arena);
    if constexpr (Plan::has_master) master_ = device_array<typename Plan::master_or_value>(arena);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((slot_[I] = device_array<std::byte>(used[I] ? rule_arena * sizeof(typename Plan::template slot<I>) : 0)), ...);
    }(typename Plan::every_slot{});
    if constexpr (has<Plan, kind::perturbation>) {
      make_saved();
      ascent = device_array<double>(1);
    }
    report = pinned<control_block>();
    late = pinned<late_report>();

    view = {tensors_.get(), tensor_of_chunk_.get(), where.chunks(), std::int32_t(where.tensors.size()),
             std::int32_t(groups.size()), master_.get(), {}, control.get(), groups_.get(), units_.get(),
             sum_terms_.get(), memories_.get(), partial_.get(), totals_.get(), {}, {}, view.clipped};
    if constexpr (Plan::parallel) ranks_.show_in(view);
    if constexpr (Plan::is_sam && !Plan::measures) make_norm_partial();
    if constexpr (Plan::has_extras) view.extra.buffers = {remainder_.get(), average_.get(), slow_.get(), 0};
    if constexpr (Plan::has_step_terms) view.extra.step_terms = step_terms_.get();
    if constexpr (Plan::selects_rows) {
      rows = {where, groups.size(), stream};
      view.extra.rows = rows.records();
      view.extra.rules = rows.rules();
    }
    scale = &control.get()->scale;
    if constexpr (Plan::shares_scale) scale = &get<kind::loss_scale>(policies).shared->state;
    for (std::size_t i = 0; i != Plan::slots; ++i) view.slot[i] = slot_[i].get();
  }

  cudaStream_t stream;
  int device = 0;
  typename Plan::policies policies;
  device_array<control_block> control;
  device_array<double> ascent;  // the factor of sam
  device_array<std::byte> saved;  // the values that ascend() or swap_in() replaces
  std::int64_t rule_chunks = 0, own_chunks = 0;
  std::conditional_t<Plan::selects_rows, cuda_rows<Plan>, no_rows> rows;
  std::unique_ptr<control_block, pinned_delete> report;
  std::unique_ptr<late_report, pinned_delete> late;
  device_view<Plan> view{};
  loss_scale_state const* scale = nullptr;

 private:
  cuda_ranks<Plan>& ranks_;
  device_array<tensor_record<typename Plan::value, typename Plan::gradient>> tensors_;
  device_array<std::int32_t> tensor_of_chunk_;
  device_array<entry> groups_;
  device_array<unit_terms<rule, typename Plan::real>> units_, sum_terms_;
  device_array<memory_of<rule>> memories_, next_memories_;
  device_array<double> partial_, totals_, factors_, norm_partial_, piece_partial_;
  device_array<row_pieces> row_pieces_;
  device_array<typename Plan::real> row_factors_;
  device_array<step_terms_of<Plan>> step_terms_;  // of this step, and of the sums in the next step
  device_array<typename Plan::master_or_value> master_;
  device_array<std::uint16_t> remainder_;
  device_array<typename Plan::real> average_;
  device_array<typename Plan::slow> slow_;
  std::array<device_array<std::byte>, Plan::slots> slot_;
  std::size_t arena_ = 0;
  bool has_elements_ = true;
};

}  // namespace descent::detail
