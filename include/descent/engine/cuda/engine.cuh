// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/cuda.hpp>
#include <descent/engine/cuda/gradients.cuh>
#include <descent/engine/cuda/addresses.cuh>
#include <descent/engine/cuda/storage.cuh>
#include <descent/engine/cuda/waiting.cuh>
#include <descent/engine/step/no_matrices.hpp>
#include <descent/engine/step/sending.hpp>
#include <descent/core/detail/containers.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace descent::detail {

/// The engine of the backend cuda: what it enqueues, and in which order.
template <class Plan> class cuda_engine {
  using rule = typename Plan::rule;
  using entry = group_entry<rule>;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

 public:
  cuda_storage<Plan> storage;
  cuda_ranks<Plan> ranks;  // destroyed before the memory that its kernels read
  cuda_model<Plan> model;
  matrices_of<Plan, cuda_matrices<Plan>> matrices;

  cuda_engine(tensors const& where, plain_vector<entry> const& groups, typename Plan::policies const& policies,
              std::array<bool, Plan::slots> const& used, cuda const& backend)
      : storage(ranks, model, policies, backend.stream) {
    refuse_capture("the constructor");
    early_ = may_begin_early(require_code(control_step<Plan>, storage.device)) && !Plan::parallel && !Plan::splits;
    require_device_tensors(where, storage.device);
    each_policy_input<Plan>(policies, [&](outside_memory const& m) { require_device_memory(m, storage.device); });
    if constexpr (Plan::parallel)
      if (Plan::parallel_policy::agrees) where_ = sole_pointer(new tensors(where));
    start([&] {
      device_arena arena;
      model.join(where, groups, storage.policies, storage.stream);
      ranks.join(where, groups, storage.policies, storage.stream);
      model.add_to(arena);
      ranks.add_to(arena, where, groups, storage.policies);
      storage.add_to(arena, where, groups, used);
      matrices.add_to(arena, where, storage.policies, model);
      storage.allocate(std::move(arena));
      ranks.show_in(storage.policies);
      storage.start();
      if constexpr (Plan::shards) ranks.stage(storage.view, storage.own_chunks);
      if (!storage.is_initialized()) enqueue(storage.rule_chunks, start_packets<Plan>{storage.view});
      matrices.start(storage.view, storage.stream);
      if constexpr (Plan::parallel || Plan::splits) describe_to_ranks(*this, groups);
      if constexpr (Plan::sums || ((Plan::parallel || Plan::splits) && Plan::has_matrices)) set_groups(groups);
    });
  }
  /// Stream-ordered memory may be freed once the work of all streams is ordered before it.
  ~cuda_engine() {
    if constexpr (Plan::parallel) try { ranks.await_buckets(); } catch (cuda_error const&) {}
    waiting_.release();
  }
  cuda_engine(cuda_engine const&) = delete;
  cuda_engine& operator=(cuda_engine const&) = delete;

  /// Waits until the state is initialized.
  void await_start() {
    start([&] {
      control_block c = start_of<Plan>(storage.policies);
      c.scale = read_scale();
      storage.late().start(c);
    });
  }

  /// Runs f with another stream in place of the optimizer's, in order with the work before and after it on the latter.
  template <class F> void on_stream(cudaStream_t s, F const& f) {
    device_scope const scope(storage.device);
    run_elsewhere(storage.stream, s, passes_, f);
  }

  void step([[maybe_unused]] plain_vector<entry> const& groups, step_call const& call) {
    [[maybe_unused]] auto const whole = begin_range<Plan>("step");
    device_scope const scope(storage.device);
    bool const complete = meets(groups, call);
    control_view<Plan> w = controls();
    w.reports = Plan::parallel || storage.rule_chunks == 0;
    [[maybe_unused]] char const* const name = call.flush ? "flush()" : "step()";
    if constexpr (Plan::parallel)
      if (complete) ranks.reduce(storage.view, controls(), groups, way_to_send(call), call, name, Plan::zeroes_own);
    if constexpr (Plan::norm_first) {
      if (complete) gradients_.template measure_all<measure::norm>(controls(), call, name);
      launch_early(early_, decide_step<Plan>, 1, total_threads, storage.stream, storage.view, w, call);
      if (complete) gradients_.template measure_all<measure::sums>(controls(), call, name);
      launch_early(early_, find_all_terms<Plan>, 1, total_threads, storage.stream, storage.view, w);
    } else {
      if constexpr (Plan::measures)
        if (complete)
          gradients_.template measure_all<Plan::sums ? measure::norm_and_sums : measure::norm>(controls(), call, name);
      launch_early(early_, control_step<Plan>, 1, total_threads, storage.stream, storage.view, w, call);
    }
    if constexpr (Plan::per_row_step)
      launch(count_updates<Plan>, storage.view.chunk_count, packet_threads, storage.stream, storage.view);
    if (!complete) return;
    update_packets<Plan> const update{storage.view, w.reports ? nullptr : w.late, w.scale};
    share_values(true, [&] {
      [[maybe_unused]] auto const range = begin_range<Plan>("update");
      enqueue(storage.rule_chunks, update);
      if constexpr (Plan::has_matrices)
        matrices.step(storage.view, controls(), groups, call, storage.capturing(), [&](std::size_t done) {
          if constexpr (Plan::shards) ranks.send_final_values(done);
        });
    });
    waiting_.keep_rows();
  }
  void commit_matrices(plain_vector<entry> const& groups) {
    device_scope const scope(storage.device);
    if (matrices.commit(storage.capturing()) && (Plan::parallel || Plan::splits)) set_groups(groups);
  }

  std::span<memory_of<rule>> memories() const { return storage.memories(); }
  std::vector<double> norm_partials() const { return storage.norm_partials(); }

  /// Runs a separate read-only pass, for norm_partials().
  void measure_norm([[maybe_unused]] plain_vector<entry> const& groups,
                    [[maybe_unused]] char const* name = "gradient_norm()") {
    device_scope const scope(storage.device);
    step_call const measuring{1, false, true};
    if constexpr (!Plan::measures) storage.make_norm_partial();
    if constexpr (Plan::parallel)
      ranks.reduce(storage.view, controls(), groups,
                   gradients_.sends() ? sending::marked_to_measure : sending::all_to_measure, measuring, name, false);
    gradients_.template measure_all<measure::norm>(controls(), measuring, name);
    if constexpr (Plan::splits) model.leave(storage.norm_view());
    if constexpr (Plan::parallel) ranks.leave();
  }
  /// Sends the groups as kernel parameters: without a copy, and in order with the steps around it. Returns false if the
  /// stream is capturing, because the device does not have them yet.
  bool set_groups(plain_vector<entry> const& groups) {
    device_scope const scope(storage.device);
    if constexpr (Plan::parallel) ranks.await_buckets();
    std::uint64_t hash = 0;
    if constexpr (Plan::parallel) hash = ranks.hash_of(groups, storage.policies) + matrices.hash();
    else if constexpr (Plan::splits) hash = model.hash_of(groups, storage.policies) + matrices.hash();
    if constexpr (Plan::parallel || Plan::splits) describe_to_ranks(*this, groups);
    send_groups<Plan>(groups, hash, storage.stream, storage.view, controls());
    return !storage.capturing();
  }

  /// Marks the gradient of a tensor as ready to be sent.
  void ready(plain_vector<entry> const& groups, std::size_t tensor) { ready(groups, tensor, storage.stream); }
  void ready(plain_vector<entry> const& groups, std::size_t tensor, cudaStream_t maker) {
    device_scope const scope(storage.device);
    ranks.check();
    ranks.ready(storage.view, groups, tensor, maker, gradients_.sends(), Plan::zeroes_own);
  }
  /// Whether any gradient is marked in a micro-batch that sends gradients.
  bool any_ready() const { return ranks.any_ready() && gradients_.sends(); }

  void zero_gradients() {
    device_scope const scope(storage.device);
    for_packets<callers>(callers_view(), zero_all{});
    waiting_.forget();
  }
  void reload_values() {
    device_scope const scope(storage.device);
    if constexpr (Plan::shards) ranks.stage(storage.view, storage.own_chunks);
    for_packets<Plan>(storage.view, reload_all{});
  }
  bool values_changed() {
    device_scope const scope(storage.device);
    if constexpr (Plan::shards) ranks.stage(storage.view, storage.own_chunks);
    return finds(storage.stream, [&](std::int32_t* x) { for_packets<Plan>(storage.view, compare_all{x}); });
  }
  template <class Body> void in_tensor(tensors const& where, std::size_t tensor, Body const& body) {
    device_scope const scope(storage.device);
    auto const& x = where.tensors[tensor];
    enqueue(chunks_of(x.count), some_packets<Plan, Body>{{storage.view, body}, x.first_chunk});
  }
  template <class F>
  void scale_rows(tensors const& where, std::size_t tensor, F const& f, std::span<float const> s, std::int64_t block) {
    in_tensor(where, tensor, scale_rows_all<factor_from<F>>{{f, s.data()}, block});
  }
  void unscale_gradients() {
    device_scope const scope(storage.device);
    enqueue(storage.view.chunk_count, scaled_packets<callers, unscale_body>{callers_view(), storage.scale, {}});
  }
  void mark_unscaled(bool is) {
    device_scope const scope(storage.device);
    launch(set_value<bool>, 1, 1, storage.stream, &storage.control->unscaled, is);
  }
  template <class F> void transform_gradients(F const& f) {
    device_scope const scope(storage.device);
    using body = scaled_packets<callers, transform_body<F>>;
    enqueue(storage.view.chunk_count, body{callers_view(), storage.scale, {f}});
  }
  void ascend(plain_vector<entry> const& groups) {
    device_scope const scope(storage.device);
    measure_norm(groups, "ascend()");
    launch(find_perturbation<Plan>, 1, total_threads, storage.stream, storage.norm_view(), controls(), storage.ascent);
    enqueue(storage.view.chunk_count, ascend_packets<Plan>{storage.view, storage.saved, storage.ascent});
  }
  template <swap_target To> void swap_in(plain_vector<entry> const&) {
    device_scope const scope(storage.device);
    storage.make_saved();
    using body = swap_in_packets<Plan, To>;
    share_values(false, [&] { enqueue(storage.own_chunks, body{storage.view, storage.saved, storage.policies}); });
  }
  void restore_values() {
    share_values(false, [&] { for_packets<Plan>(storage.view, restore_all{storage.saved}); });
  }

  void select_rows(std::size_t tensor, std::int64_t rows, auto... selection) {
    device_scope const scope(storage.device);
    storage.rows.select(tensor, rows, selection...);
  }
  std::int32_t const* row_updates(std::size_t tensor) const { return storage.rows.updates(tensor); }

  void rebind(tensors const& where, std::vector<tensor_addresses> const& addresses) {
    device_scope const scope(storage.device);
    storage.require_addresses(where, addresses);
    if constexpr (Plan::parallel) ranks.rebind(addresses);
    storage.rebind(addresses);
    if (where_) where_->rebind(addresses);
  }

  control_block read_for(row_changes<tensors> const& changes) const {
    device_scope const scope(storage.device);
    return storage.read_for(changes);
  }
  /// Copies from `old` the state of the rows that stay and the state that belongs to no element.
  void take(cuda_engine const& old, control_block const& control, row_changes<tensors> const& changes,
            plain_vector<entry> const& groups) {
    device_scope const scope(storage.device);
    storage.take(old.storage, changes);
    waiting_.hold_scale(true, true);
    if constexpr (Plan::sums) set_groups(groups);  // the terms of the next sums depend on t
    storage.late().start(control);
  }

  /// Throws std::invalid_argument on all ranks if they have diverged. Waits for the stream.
  void agree(tensors const& where, plain_vector<entry> const& groups) {
    device_scope const scope(storage.device);
    ranks.check();
    ranks.await_buckets();
    plain_vector<memory_of<rule>> kept(has_memory<rule> ? memories().size() : 0);
    storage.read_back(kept.data(), memories().data(), kept.size());
    ranks.agree(storage.view, storage.owned(0), where, groups, read_control(), read_scale(), {kept.data(), kept.size()},
                matrices.facts(where.names));
  }

  /// Replaces the values, the groups and all owned state of every rank by those of rank `root`. Waits for the stream.
  void broadcast(plain_vector<entry>& groups, int root) {
    device_scope const scope(storage.device);
    if (gradients_.batches_wait()) throw std::logic_error("broadcast(): micro-batches wait for their step");
    ranks.check();
    ranks.await_buckets();
    storage.broadcast(groups, root, matrices);
    set_groups(groups);
    storage.late().start(read_control());
  }

  template <class T> void set_control(T control_block::* field, T const& x, plain_vector<entry> const& groups) {
    device_scope const scope(storage.device);
    launch(set_value<T>, 1, 1, storage.stream, &(storage.control->*field), x);
    if constexpr (Plan::sums) set_groups(groups);  // the terms of the next sums depend on t and rates
  }
  void observe(float const* where, double metric, plain_vector<entry> const& groups) {
    device_scope const scope(storage.device);
    launch(observe_step<Plan>, 1, 1, storage.stream, storage.view, controls(), where, metric);
    if constexpr (Plan::sums) set_groups(groups);
  }

  /// The factor that turns gradients in memory into true gradients.
  double inverse(control_block const& c, step_call const& s) const { return gradients_.inverse(c, read_scale(), s); }
  typename Plan::policies const& policies() const { return storage.policies; }
  static bool on_host(void const* p) { return host_may_read(p); }
  control_block read_control() const {
    device_scope const scope(storage.device);
    return storage.read_control();
  }

  void refuse_capture(char const* what) const { refuse_capturing(storage.stream, what); }
  control_block late_control() const { return newest(storage.late()); }
  float const* loss_scale_pointer() const { return &storage.scale->scale; }
  loss_scale_state read_scale() const {
    device_scope const scope(storage.device);
    loss_scale_state s;
    storage.read_back(&s, storage.scale, 1);
    return s;
  }
  std::string name() const { return "CUDA device " + std::to_string(storage.device); }

  tensors const& whole() const requires(Plan::splits) { return model.whole(); }

 private:
  /// Makes the optimizer, or a part of it. If that fails, aborts the ranks that wait for it.
  template <class F> void start(F const& make) {
    model.start([&] { ranks.start(make); });
  }
  control_view<Plan> controls() const {
    control_view<Plan> w = storage.controls();
    if constexpr (Plan::has_matrices) w.matrices = matrices.rules_view();
    return w;
  }
  /// The plan of passes over the caller's gradients.
  using callers = std::conditional_t<Plan::parallel, callers_plan<Plan>, Plan>;
  device_view<callers> callers_view() const {
    if constexpr (Plan::parallel) return ranks.callers_of(storage.view);
    else return storage.view;
  }
  /// Applies body to each packet of `chunks` chunks.
  template <class Body> void enqueue(std::int64_t chunks, Body const& body) {
    launch_packets(early_, chunks, storage.stream, body);
  }
  /// Applies body to all packets or, with shards, to those that this rank owns.
  template <class Seen, class Body> void for_packets(device_view<Seen> const& view, Body const& body) {
    device_scope const scope(storage.device);
    enqueue(Seen::shards ? storage.own_chunks : storage.view.chunk_count, all_packets<Seen, Body>{view, body});
  }

  /// Calls change() and, if each rank changes only its shard of the values, exchanges the shards: all of it or nothing.
  template <class F> void share_values(bool is_step, F const& change) {
    if constexpr (Plan::parallel) ranks.await_buckets();
    if constexpr (Plan::shards) {
      ranks.check();
      ranks.stage(storage.view, storage.own_chunks);
    }
    change();
    if constexpr (Plan::shards) ranks.gather(storage.view, is_step);
  }

  /// Whether ranks meet in this call of step(). True with one rank.
  bool meets(plain_vector<entry> const& groups, step_call const& call) {
    return gradients_.meets(groups, call, [&] {
      if constexpr (Plan::parallel) agree(*where_, groups);
    });
  }

  cuda_gradients<Plan> gradients_{storage, ranks, model};
  cuda_waiting<Plan> waiting_{storage};
  sole_pointer<tensors> where_;  // for agree_every
  owned_event passes_;           // for on_stream()
  bool early_ = false;           // whether kernels of a step may begin before those before them have ended
};

}  // namespace descent::detail
