// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/cuda.cuh>
#include <descent/detail/controller.cuh>
#include <descent/detail/cuda_check.hpp>
#include <descent/detail/cuda_rows.cuh>
#include <descent/detail/device_memory.hpp>
#include <descent/detail/kernels.cuh>
#include <descent/detail/launch.cuh>
#include <descent/detail/matrix_stage.hpp>

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

/// The CUDA backend: what it owns, and what it enqueues.
namespace descent::detail {

template <class Plan> class cuda_engine {
  static_assert(!Plan::parallel, "replicated and sharded are for the backend host{} so far");
  using rule = typename Plan::rule;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

 public:
  cuda_engine(tensors const& where, std::vector<entry> const& groups, typename Plan::policies const& policies,
              std::array<bool, Plan::slots> const& used, cuda const& backend)
      : stream_(backend.stream), policies_(policies) {
    require_cuda(cudaGetDevice(&device_), "cudaGetDevice");
    refuse_capture("the constructor");
    require_code(control_step<Plan>, device_);
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      auto const& x = where.tensors[t];
      require_device_memory(x.value, x.count, device_, "parameter '" + where.names[t] + "': its value");
      require_device_memory(x.gradient, x.count, device_, "parameter '" + where.names[t] + "': its gradient");
    }
    if constexpr (Plan::template given<typename Plan::loss>)
      require_device_memory(static_cast<typename Plan::loss const&>(policies_).where, 1, device_, "loss_at: the loss");
    allocate(where, groups, used);
    launch(each_packet<start_packets<Plan>>, rule_chunks_, packet_threads, stream_, start_packets<Plan>{view_});
    matrices_.start(where, policies_, view_, stream_);
    if constexpr (Plan::sums) set_groups(groups);
    late_->slot[0] = start_of<Plan>(policies_);
    late_->slot[0].scale = read_scale();  // and waits for all of it
  }

  void step([[maybe_unused]] std::vector<entry> const& groups, step_call const& call) {
    device_scope const scope(device_);
    if constexpr (Plan::norm_first) {
      measure_all<measure::norm>(call);
      launch(decide_step<Plan>, 1, total_threads, stream_, view_, controls(), call);
      measure_all<measure::sums>(call);
      launch(find_all_terms<Plan>, 1, total_threads, stream_, view_, controls());
    } else {
      if constexpr (Plan::measures) measure_all<Plan::sums ? measure::norm_and_sums : measure::norm>(call);
      launch(control_step<Plan>, 1, total_threads, stream_, view_, controls(), call);
    }
    if constexpr (Plan::own_updates)
      launch(count_updates<Plan>, view_.chunk_count, packet_threads, stream_, view_);
    launch(each_packet<update_packets<Plan>>, rule_chunks_, packet_threads, stream_, update_packets<Plan>{view_});
    if constexpr (Plan::has_matrices) matrices_.step(view_, controls(), groups, call, capturing());
  }
  auto& matrices() { return matrices_; }
  void commit_matrices() {
    device_scope const scope(device_);
    matrices_.commit(capturing());
  }

  /// A read-only pass of its own, for norm_partials().
  void measure_norm(std::vector<entry> const&) {
    device_scope const scope(device_);
    if constexpr (!Plan::measures) {
      make_norm_partial();
      launch(measure_chunks<Plan, measure::norm>, view_.chunk_count, chunk_threads, stream_, norm_view(), controls(),
             step_call{0, false, true});
    } else {
      measure_all<measure::norm>({0, false, true});
    }
  }
  /// Enqueues the groups as kernel parameters: no copy, and in order with the steps around it. False when that was
  /// captured, so that the device does not have them yet.
  bool set_groups(std::vector<entry> const& groups) {
    device_scope const scope(device_);
    for (std::size_t first = 0; first < groups.size();) {
      group_batch<rule> batch{int(first), 0, {}};
      while (batch.count < batch.capacity && first < groups.size()) batch.entry[batch.count++] = groups[first++];
      launch(set_step_groups<Plan>, 1, total_threads, stream_, view_, controls(), batch);
    }
    return !capturing();
  }

  /// The rows of the norm as the last read-only pass left them; none when there was none.
  std::vector<double> norm_partials() const {
    device_scope const scope(device_);
    double const* rows = Plan::measures ? partial_.get() : norm_partial_.get();
    std::vector<double> partial(rows ? Plan::norm_rows * std::size_t(view_.chunk_count) : 0);
    read_back(partial.data(), rows, partial.size());
    return partial;
  }

  void zero_gradients() { for_packets(zero_all{}); }
  void reload_values() { for_packets(reload_all{}); }
  void unscale_gradients() {
    device_scope const scope(device_);
    using body = scaled_packets<Plan, unscale_body>;
    launch(each_packet<body>, view_.chunk_count, packet_threads, stream_, body{view_, scale_, {}});
    launch(mark_unscaled<Plan>, 1, 1, stream_, view_);
  }
  template <class F> void transform_gradients(F const& f) {
    device_scope const scope(device_);
    using body = scaled_packets<Plan, transform_body<F>>;
    launch(each_packet<body>, view_.chunk_count, packet_threads, stream_, body{view_, scale_, {f}});
  }
  void ascend(std::vector<entry> const& groups) {
    device_scope const scope(device_);
    measure_norm(groups);
    launch(find_ascent<Plan>, 1, total_threads, stream_, norm_view(), controls(), ascent_.get());
    using body = ascend_packets<Plan>;
    launch(each_packet<body>, view_.chunk_count, packet_threads, stream_, body{view_, saved_.get(), ascent_.get()});
  }
  template <point To> void swap_in(std::vector<entry> const&) {
    device_scope const scope(device_);
    make_saved();
    using body = swap_in_packets<Plan, To>;
    launch(each_packet<body>, view_.chunk_count, packet_threads, stream_, body{view_, saved_.get(), policies_});
  }
  void restore_values() { for_packets(restore_all{saved_.get()}); }

  void select_rows(std::size_t tensor, std::int64_t rows, std::uint8_t const* mask) {
    device_scope const scope(device_);
    if (mask) require_device_memory(mask, rows, device_, "select_rows: the mask");
    rows_.select(tensor, mask);
  }
  template <class Index>
  void select_rows(std::size_t tensor, std::int64_t rows, Index const* list, std::int64_t count) {
    device_scope const scope(device_);
    require_device_memory(list, count, device_, "select_rows: the list");
    if (rows_.lacks_mask(tensor, rows)) refuse_capture("the first select_rows() by a list");
    rows_.select(tensor, rows, list, count);
  }
  std::int32_t const* row_updates(std::size_t tensor) const { return rows_.updates(tensor); }

  /// Takes over what rows of the old one have become rows of this one, and all that is no element's.
  void take(cuda_engine const& old, row_changes<tensors> const& changes, std::vector<entry> const& groups) {
    device_scope const scope(device_);
    require_sources(changes, device_, stream_);
    for (std::size_t t = 0; t < changes.moves.size(); ++t) {
      auto const [o, from] = changes.moves[t];
      if (o < 0) continue;
      auto const& before = changes.old.tensors[std::size_t(o)];
      auto const& x = changes.now.tensors[t];
      auto const to = owned(x.arena), source = old.owned(before.arena);
      for (std::size_t b = 0; b < to.size(); ++b)
        if (to[b].at) gather(to[b], source[b], from, changes.now.columns[t], x.count, stream_);
      if constexpr (Plan::own_updates)
        gather(rows_.buffer(t), old.rows_.buffer(std::size_t(o)), from, 1, rows_of(changes.now, t), stream_);
      if constexpr (has_memory<rule> && Plan::unit_per_tensor) copy_one(memories_.get() + t, old.memories_.get() + o);
    }
    if constexpr (has_memory<rule> && !Plan::unit_per_tensor)
      for (std::int32_t g = 0; g < std::min(view_.group_count, old.view_.group_count); ++g)
        copy_one(memories_.get() + g, old.memories_.get() + g);
    copy_one(control_.get(), old.control_.get());
    if constexpr (Plan::sums) set_groups(groups);  // what the next sums need depends on t
    control_.read(&late_->slot[0], stream_);
  }

  void copy(void* to, void const* from, std::size_t bytes) {
    device_scope const scope(device_);
    if (bytes) require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
  template <class T> void set_control(T control_block::*field, T const& x, std::vector<entry> const& groups) {
    device_scope const scope(device_);
    launch(set_value<T>, 1, 1, stream_, &(control_.get()->*field), x);
    if constexpr (Plan::sums) set_groups(groups);  // what the next sums need depends on t and rates
  }
  void observe(float const* where, double metric, std::vector<entry> const& groups) {
    device_scope const scope(device_);
    launch(observe_step<Plan>, 1, 1, stream_, view_, controls(), where, metric);
    if constexpr (Plan::sums) set_groups(groups);
  }

  typename Plan::policies const& policies() const { return policies_; }
  control_block read_control() const {
    device_scope const scope(device_);
    read_back(report_.get(), control_.get(), 1);
    return *report_;
  }

  void refuse_capture(char const* what) const {
    if (capturing())
      throw std::logic_error(std::string(what) +
                             " waits for the stream, which is capturing: call it after the graph has run");
  }

  control_block late_control() const { return newest(*late_); }

  float const* loss_scale_pointer() const { return &scale_->scale; }
  loss_scale_state read_scale() const {
    device_scope const scope(device_);
    loss_scale_state s;
    read_back(&s, scale_, 1);
    return s;
  }

  void* master() const { return master_.get(); }
  void* remainder() const { return remainder_.get(); }
  void* average() const { return average_.get(); }
  void* slow() const { return slow_.get(); }
  void* slot(std::size_t i) const { return slot_[i].get(); }
  std::string name() const { return "CUDA device " + std::to_string(device_); }

 private:
  /// All that is owned of the elements from `first` on.
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
  template <class T> void copy_one(T* to, T const* from) {
    require_cuda(cudaMemcpyAsync(to, from, sizeof(T), cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
  }
  void make_saved() {
    if (!saved_.get()) saved_ = device_array<std::byte>(arena_ * std::size_t(Plan::largest_value));
  }
  void make_norm_partial() {
    if (!norm_partial_.get()) norm_partial_ = device_array<double>(Plan::norm_rows * std::size_t(view_.chunk_count));
  }
  /// The view of what measure_norm() found.
  device_view<Plan> norm_view() const {
    device_view<Plan> view = view_;
    if (!Plan::measures) view.partial = norm_partial_.get();
    return view;
  }

  bool capturing() const {
    cudaStreamCaptureStatus status;
    require_cuda(cudaStreamIsCapturing(stream_, &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }

  template <class T> void read_back(T* to, T const* from, std::size_t count) const {
    if (count == 0) return;
    require_cuda(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  template <class Body> void for_packets(Body const& body) {
    device_scope const scope(device_);
    launch(each_packet<all_packets<Plan, Body>>, view_.chunk_count, packet_threads, stream_, {view_, body});
  }

  control_view<Plan> controls() const {
    return {policies_, step_terms_.get(), step_terms_.get() + 1, factors_.get(), scale_, late_.get()};
  }

  template <measure What> void measure_all(step_call const& call) {
    launch(measure_chunks<Plan, What>, view_.chunk_count, chunk_threads, stream_, view_, controls(), call);
  }

  static constexpr int rows = (Plan::measures ? Plan::norm_rows : 0) + int(Plan::sum_count);

  void allocate(tensors const& where, std::vector<entry> const& groups, std::array<bool, Plan::slots> const& used) {
    rule_chunks_ = where.rule_chunks;
    auto const rule_arena = std::size_t(where.rule_arena);
    std::size_t const units = Plan::unit_per_tensor ? where.tensors.size() : groups.size();
    auto const arena = arena_ = std::size_t(where.arena), chunks = std::size_t(where.chunks());
    tensors_ = {where.tensors, stream_};
    tensor_of_chunk_ = {where.tensor_of_chunk, stream_};
    groups_ = {groups, stream_};
    control_ = {std::array{start_of<Plan>(policies_)}, stream_};
    units_ = device_array<unit<rule, typename Plan::real>>(units);
    partial_ = {std::vector<double>(rows * chunks), stream_};
    if constexpr (Plan::sums)
      pending_ = device_array<unit<rule, typename Plan::real>>(Plan::pending_per_tensor ? units : groups.size());
    if constexpr (has_memory<rule>) memories_ = {std::vector<memory_of<rule>>(units), stream_};
    if constexpr (Plan::totals_per_tensor)
      totals_ = device_array<double>((Plan::norm_rows + Plan::sum_count) * where.tensors.size());
    if constexpr (Plan::clip_over != scope::model)
      factors_ = device_array<double>(Plan::clip_over == scope::tensor ? where.tensors.size() : groups.size());
    if constexpr (Plan::has_step_terms) step_terms_ = device_array<step_terms_of<Plan>>(2);
    if constexpr (Plan::has_remainder) remainder_ = device_array<std::uint16_t>(arena);
    if constexpr (Plan::template given<typename Plan::average>) average_ = device_array<typename Plan::real>(arena);
    if constexpr (Plan::template given<typename Plan::lookahead>) slow_ = device_array<typename Plan::slow>(arena);
    if constexpr (Plan::has_master) master_ = device_array<typename Plan::exact>(arena);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((slot_[I] = device_array<std::byte>(used[I] ? rule_arena * sizeof(typename Plan::template slot<I>) : 0)), ...);
    }(typename Plan::every_slot{});
    if constexpr (Plan::template given<typename Plan::ascent>) {
      make_saved();
      ascent_ = device_array<double>(1);
    }
    report_ = pinned<control_block>();
    late_ = pinned<late_report>();

    view_ = {tensors_.get(), tensor_of_chunk_.get(), where.chunks(), std::int32_t(where.tensors.size()),
             std::int32_t(groups.size()), master_.get(), {}, control_.get(), groups_.get(), units_.get(),
             pending_.get(), memories_.get(), partial_.get(), totals_.get(), {}};
    if constexpr (Plan::ascends && !Plan::measures) make_norm_partial();
    if constexpr (Plan::has_extras) view_.extra.buffers = {remainder_.get(), average_.get(), slow_.get(), 0};
    if constexpr (Plan::has_step_terms) view_.extra.step_terms = step_terms_.get();
    if constexpr (Plan::selects_rows) {
      rows_ = {where, groups.size(), stream_};
      view_.extra.rows = rows_.records();
      view_.extra.rules = rows_.rules();
    }
    scale_ = &control_.get()->scale;
    if constexpr (Plan::shares_scale)
      scale_ = &static_cast<typename Plan::loss_scale const&>(policies_).shared->state;
    for (std::size_t i = 0; i != Plan::slots; ++i) view_.slot[i] = slot_[i].get();
  }

  cudaStream_t stream_;
  int device_ = 0;
  typename Plan::policies policies_;
  device_array<tensor_record<typename Plan::value, typename Plan::gradient>> tensors_;
  device_array<std::int32_t> tensor_of_chunk_;
  device_array<entry> groups_;
  device_array<control_block> control_;
  device_array<unit<rule, typename Plan::real>> units_, pending_;
  device_array<memory_of<rule>> memories_;
  device_array<double> partial_, totals_, factors_, norm_partial_, ascent_;
  device_array<step_terms_of<Plan>> step_terms_;  // of this step, and of the sums in the next
  device_array<typename Plan::exact> master_;
  device_array<std::uint16_t> remainder_;
  device_array<typename Plan::real> average_;
  device_array<typename Plan::slow> slow_;
  device_array<std::byte> saved_;
  std::size_t arena_ = 0;
  std::int64_t rule_chunks_ = 0;
  std::array<device_array<std::byte>, Plan::slots> slot_;
  std::conditional_t<Plan::selects_rows, cuda_rows<Plan>, no_rows> rows_;
  std::unique_ptr<control_block, pinned_delete> report_;
  std::unique_ptr<late_report, pinned_delete> late_;
  device_view<Plan> view_{};
  loss_scale_state const* scale_ = nullptr;
  stage_of<Plan, cuda_matrices<Plan>> matrices_;
};

}  // namespace descent::detail
