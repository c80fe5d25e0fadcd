// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/cuda.hpp>
#include <descent/detail/cuda/check.hpp>
#include <descent/detail/cuda/storage.cuh>
#include <descent/detail/matrix/stage.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The CUDA backend: what it enqueues.
namespace descent::detail {

template <class Plan> class cuda_engine : cuda_storage<Plan> {
  using base = cuda_storage<Plan>;
  using typename base::rule;
  using typename base::entry;
  using typename base::tensors;
  using base::allocate, base::capturing, base::copy_one, base::make_norm_partial, base::make_saved;
  using base::arena_, base::norm_view, base::owned, base::read_back;
  using base::ascent_, base::average_, base::control_, base::device_, base::late_, base::master_, base::memories_;
  using base::norm_partial_, base::own_chunks_, base::partial_, base::policies_, base::ranks_, base::remainder_;
  using base::report_, base::rows_, base::rule_chunks_, base::saved_, base::scale_, base::slot_, base::slow_;
  using base::stream_, base::view_;

 public:
  using base::copy, base::memories, base::norm_partials;
  using base::master, base::remainder, base::average, base::slow, base::slot;

  cuda_engine(tensors const& where, std::vector<entry> const& groups, typename Plan::policies const& policies,
              std::array<bool, Plan::slots> const& used, cuda const& backend)
      : base(policies, backend.stream) {
    refuse_capture("the constructor");
    require_code(control_step<Plan>, device_);
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      auto const& x = where.tensors[t];
      require_device_memory(x.value, x.count, device_, "parameter '" + where.names[t] + "': its value");
      require_device_memory(where.callers_gradient(t).at, x.count, device_,
                            "parameter '" + where.names[t] + "': its gradient");
    }
    if constexpr (Plan::template given<typename Plan::loss>)
      require_device_memory(static_cast<typename Plan::loss const&>(policies_).where, 1, device_, "loss_at: the loss");
    if constexpr (Plan::parallel)
      if (Plan::team::agrees) where_ = where;
    ranks_.start([&] {
      ranks_.join(where, groups, policies_, stream_);
      allocate(where, groups, used);
      if constexpr (Plan::shards) ranks_.stage(view_, own_chunks_);
      launch(each_packet<start_packets<Plan>>, rule_chunks_, packet_threads, stream_, start_packets<Plan>{view_});
      matrices_.start(where, policies_, view_, stream_);
      if constexpr (Plan::sums) set_groups(groups);
      control_block c = start_of<Plan>(policies_);
      c.scale = read_scale();  // and waits for all of it
      late_->start(c);
    });
  }

  void step([[maybe_unused]] std::vector<entry> const& groups, step_call const& call) {
    device_scope const scope(device_);
    bool const complete = meets(groups, call);
    if constexpr (Plan::parallel)
      if (complete)
        ranks_.reduce(view_, controls(), groups, call.flush ? sending::all : sending::marked, call,
                      call.flush ? "flush()" : "step()", Plan::zeroes_own);
    if constexpr (Plan::norm_first) {
      if (complete) measure_all<measure::norm>(call);
      launch(decide_step<Plan>, 1, total_threads, stream_, view_, controls(), call);
      if (complete) measure_all<measure::sums>(call);
      launch(find_all_terms<Plan>, 1, total_threads, stream_, view_, controls());
    } else {
      if constexpr (Plan::measures)
        if (complete) measure_all<Plan::sums ? measure::norm_and_sums : measure::norm>(call);
      launch(control_step<Plan>, 1, total_threads, stream_, view_, controls(), call);
    }
    if constexpr (Plan::own_updates)
      launch(count_updates<Plan>, view_.chunk_count, packet_threads, stream_, view_);
    if (!complete) return;
    share_values(true, [&] {
      launch(each_packet<update_packets<Plan>>, rule_chunks_, packet_threads, stream_, update_packets<Plan>{view_});
    });
    if constexpr (Plan::has_matrices) matrices_.step(view_, controls(), groups, call, capturing());
  }
  auto& matrices() { return matrices_; }
  void commit_matrices() {
    device_scope const scope(device_);
    matrices_.commit(capturing());
  }

  /// A read-only pass of its own, for norm_partials().
  void measure_norm([[maybe_unused]] std::vector<entry> const& groups,
                    [[maybe_unused]] char const* name = "gradient_norm()") {
    device_scope const scope(device_);
    step_call const look{1, false, true};
    if constexpr (!Plan::measures) make_norm_partial();
    if constexpr (Plan::parallel)
      ranks_.reduce(view_, controls(), groups, sends() ? sending::marked_to_look : sending::all_to_look, look, name,
                    false);
    measure_all<measure::norm>(look);
    if constexpr (Plan::parallel) ranks_.leave();
  }
  /// Enqueues the groups as kernel parameters: no copy, and in order with the steps around it. False when that was
  /// captured, so that the device does not have them yet.
  bool set_groups(std::vector<entry> const& groups) {
    device_scope const scope(device_);
    std::uint64_t hash = 0;
    if constexpr (Plan::parallel) {
      ranks_.await_buckets();
      hash = hash_of_groups<Plan>(groups, policies_);
    }
    for (std::size_t first = 0; first < groups.size();) {
      group_batch<rule> batch{int(first), 0, hash, {}};
      while (batch.count < batch.capacity && first < groups.size()) batch.entry[batch.count++] = groups[first++];
      launch(set_step_groups<Plan>, 1, total_threads, stream_, view_, controls(), batch);
    }
    return !capturing();
  }

  /// The gradient of one tensor may be sent.
  void ready(std::vector<entry> const& groups, std::size_t tensor) { ready(groups, tensor, stream_); }
  void ready(std::vector<entry> const& groups, std::size_t tensor, cudaStream_t maker) {
    device_scope const scope(device_);
    ranks_.check();
    ranks_.ready(view_, groups, tensor, maker, sends(), Plan::zeroes_own);
  }
  /// Whether some are on their way.
  bool any_ready() const { return ranks_.any_ready() && sends(); }

  void zero_gradients() { for_packets<callers>(callers_view(), zero_all{}); }
  void reload_values() {
    device_scope const scope(device_);
    if constexpr (Plan::shards) ranks_.stage(view_, own_chunks_);
    for_packets<Plan>(view_, reload_all{});
  }
  void unscale_gradients() {
    device_scope const scope(device_);
    using body = scaled_packets<callers, unscale_body>;
    launch(each_packet<body>, view_.chunk_count, packet_threads, stream_, body{callers_view(), scale_, {}});
  }
  void mark_unscaled(bool is) {
    device_scope const scope(device_);
    launch(set_value<bool>, 1, 1, stream_, &control_.get()->unscaled, is);
  }
  template <class F> void transform_gradients(F const& f) {
    device_scope const scope(device_);
    using body = scaled_packets<callers, transform_body<F>>;
    launch(each_packet<body>, view_.chunk_count, packet_threads, stream_, body{callers_view(), scale_, {f}});
  }
  void ascend(std::vector<entry> const& groups) {
    device_scope const scope(device_);
    measure_norm(groups, "ascend()");
    launch(find_ascent<Plan>, 1, total_threads, stream_, norm_view(), controls(), ascent_.get());
    using body = ascend_packets<Plan>;
    launch(each_packet<body>, view_.chunk_count, packet_threads, stream_, body{view_, saved_.get(), ascent_.get()});
  }
  template <point To> void swap_in(std::vector<entry> const&) {
    device_scope const scope(device_);
    make_saved();
    using body = swap_in_packets<Plan, To>;
    share_values(false, [&] {
      launch(each_packet<body>, own_chunks_, packet_threads, stream_, body{view_, saved_.get(), policies_});
    });
  }
  void restore_values() {
    share_values(false, [&] { for_packets<Plan>(view_, restore_all{saved_.get()}); });
  }

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

  /// Copies the state of the rows that stay, and all state that belongs to no element, from `old`.
  void take(cuda_engine const& old, row_changes<tensors> const& changes, std::vector<entry> const& groups) {
    device_scope const scope(device_);
    require_sources(changes, device_, stream_);
    base::take(old, changes);
    if constexpr (Plan::sums) set_groups(groups);  // what the next sums need depends on t
    late_->start(read_control());
  }

  /// Throws std::invalid_argument on all ranks where one has something else than others. Waits for the stream.
  void agree(tensors const& where, std::vector<entry> const& groups) {
    device_scope const scope(device_);
    ranks_.check();
    ranks_.await_buckets();
    std::vector<memory_of<rule>> kept(has_memory<rule> ? memories().size() : 0);
    read_back(kept.data(), memories_.get(), kept.size());
    ranks_.agree(facts_now<Plan>(where, groups, read_control(), read_scale(), kept, base::prints()));
  }

  /// Values, groups and all that is owned become those of one rank. Waits for the stream.
  void broadcast(std::vector<entry>& groups, int root) {
    device_scope const scope(device_);
    if (batches_ != 0) throw std::logic_error("broadcast(): micro-batches wait for their step");
    ranks_.check();
    ranks_.await_buckets();
    base::broadcast(groups, root);
    set_groups(groups);
    late_->start(read_control());
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

  /// The factor from gradients in memory to true ones.
  double inverse(control_block const& c, step_call const& call) const {
    typename Plan::policies policies = policies_;
    agreed now;
    if constexpr (Plan::parallel) {
      now = ranks_.read_now();
      static_cast<typename Plan::team&>(policies).now = &now;
    }
    return inverse_of<Plan>(c, policies, read_scale(), call);
  }
  typename Plan::policies const& policies() const { return policies_; }
  static bool on_host(void const* p) { return host_may_read(p); }
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
  std::string name() const { return "CUDA device " + std::to_string(device_); }

 private:
  control_view<Plan> controls() const {
    control_view<Plan> w = base::controls();
    if constexpr (Plan::has_matrices) w.matrices = matrices_.rules_view();
    return w;
  }
  /// How the caller's gradients are seen.
  using callers = std::conditional_t<Plan::parallel, callers_plan<Plan>, Plan>;
  device_view<callers> callers_view() const {
    if constexpr (Plan::parallel) return ranks_.callers_of(view_);
    else return view_;
  }
  /// All packets, or the own ones.
  template <class Seen, class Body> void for_packets(device_view<Seen> const& view, Body const& body) {
    device_scope const scope(device_);
    launch(each_packet<all_packets<Seen, Body>>, Seen::shards ? own_chunks_ : view_.chunk_count, packet_threads,
           stream_, {view, body});
  }

  template <measure What> void measure_all(step_call const& call) {
    device_view<Plan> const view = norm_view();
    if constexpr (Plan::shards)
      base::template each_partial<What>(view, [&](double* x, std::int64_t n) {
        require_cuda(cudaMemsetAsync(x, 0, std::size_t(n) * sizeof(double), stream_), "cudaMemsetAsync");
      });
    launch(measure_chunks<Plan, What>, own_chunks_, chunk_threads, stream_, view, controls(), call);
    if constexpr (Plan::shards)
      base::template each_partial<What>(view, [&](double* x, std::int64_t n) { ranks_.add(x, n); });
  }

  /// change() and, where each rank changes a part of the values only, the others' parts: all of it or nothing.
  template <class F> void share_values(bool is_step, F const& change) {
    if constexpr (Plan::parallel) ranks_.await_buckets();
    if constexpr (Plan::shards) {
      ranks_.check();
      ranks_.stage(view_, own_chunks_);
    }
    change();
    if constexpr (Plan::shards) ranks_.gather(view_, is_step);
  }

  /// Whether ranks meet in this call of step(), of which the host must know, so that it counts micro-batches as the
  /// device does; true where there is one rank.
  bool meets([[maybe_unused]] std::vector<entry> const& groups, [[maybe_unused]] step_call const& call) {
    if constexpr (Plan::parallel) {
      ranks_.check();
      if constexpr (Plan::overlaps)
        if (!call.flush) ranks_.require_marks(groups, "step()");
      if constexpr (Plan::team::agrees)
        if (capturing())
          throw std::logic_error("step(): agree_every{} waits for the stream, which is capturing: call agree() between "
                                 "replays instead");
      if constexpr (Plan::template given<typename Plan::accumulation>) {
        if (bool const now = capturing(); now != captures_) {
          if (batches_ != 0)
            throw std::logic_error("step(): with ranks a capture begins with the first micro-batch of an update and "
                                   "ends with the last");
          captures_ = now;
        }
        bool const complete = call.flush || batches_ + 1 >= micro_batches<Plan>(policies_, 0);
        if (complete) agree_if_due(groups);
        batches_ = complete ? 0 : batches_ + 1;
        if constexpr (Plan::overlaps)
          if (!complete) ranks_.end_unsent();
        return complete;
      }
      agree_if_due(groups);
    }
    return true;
  }
  void agree_if_due([[maybe_unused]] std::vector<entry> const& groups) {
    if constexpr (Plan::team::agrees)
      if (++updates_ % static_cast<typename Plan::team const&>(policies_).updates_between == 0) agree(*where_, groups);
  }
  /// Whether gradients go over the wire in this micro-batch.
  bool sends() const {
    if constexpr (Plan::parallel && Plan::template given<typename Plan::accumulation>)
      return batches_ + 1 >= micro_batches<Plan>(policies_, 0);
    else return true;
  }

  bool captures_ = false;  // whether the micro-batches that wait were captured
  std::int64_t batches_ = 0;
  std::int64_t updates_ = 0;      // in which ranks met
  std::optional<tensors> where_;  // for agree_every
  stage_of<Plan, cuda_matrices<Plan>> matrices_;
};

}  // namespace descent::detail
