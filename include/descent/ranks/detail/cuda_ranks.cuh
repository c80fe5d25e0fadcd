// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/addresses.cuh>
#include <descent/engine/cuda/device_memory.hpp>
#include <descent/engine/cuda/launch.cuh>
#include <descent/ranks/detail/cuda_rank_calls.cuh>
#include <descent/ranks/detail/cuda_rank_kernels.cuh>
#include <descent/engine/cuda/single_rank.hpp>
#include <descent/engine/cuda/stream.hpp>
#include <descent/engine/step/profiler.hpp>
#include <descent/ranks/detail/ready_marks.hpp>
#include <descent/ranks/detail/value_layout.hpp>
#include <descent/core/detail/containers.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// The CUDA backend's exchanges with other ranks. Everything is enqueued. The next kernels recognize the data that an
/// aborted collective leaves, and do not use it.
namespace descent::detail {

template <class Plan>
requires(Plan::parallel)
class cuda_ranks<Plan> : public device_rank_calls<typename Plan::parallel_policy::communicator_type> {
  using tensors = layout<typename Plan::value, typename Plan::gradient>;
  using callers = callers_plan<Plan>;
  using callers_record = tensor_record<typename Plan::value, typename Plan::own_gradient>;
  using comm_type = typename Plan::parallel_policy::communicator_type;
  static_assert(comm_type::on_device, "cuda{} needs a communicator for device memory, such as comm::nccl");
  static_assert(!grows_batch<typename Plan::accumulation>,
                "accumulate_by cannot be combined with ranks on cuda{}: the host must know which calls send gradients");
  using wire = typename Plan::gradient_sum::wire;
  using sum = typename Plan::gradient_sum::sum;
  static constexpr bool ordered = Plan::gradient_sum::ordered;
  using calls = device_rank_calls<comm_type>;
  using calls::comm_, calls::stream_, calls::number_, calls::read;

 public:
  using calls::meet, calls::wait;

  /// Waits for all ranks. Throws std::invalid_argument if they disagree about the training setup.
  void join(tensors const& where, plain_vector<group_entry<typename Plan::rule>> const& groups,
            typename Plan::policies const& policies, cudaStream_t const& stream) {
    auto const& parallel = get<kind::parallel>(policies);
    ranks_ = parallel.comm->size();
    auto const facts = [&] {
      auto all = facts_of<Plan>(where, groups, policies);
      if constexpr (Plan::shares_scale) all.push_back(fact_of_shared(read(&policies.shared->state)));
      return all;
    };
    calls::join_with(*parallel.comm, stream, "the constructor", facts, [&](auto&) {
      for (auto const& x : where.tensors) {
        chunks_of_tensor_.push_back({x.first_chunk, chunks_of(x.count), x.matrix});
        callers_values_.push_back({x.value, x.count * x.value_size()});
        broadcast(x.value, callers_values_.back().bytes, 0);
      }
      return std::string();
    });
    all_ = partition_of<Plan>(where, parallel);
  }

  /// Adds what it needs to the arena.
  void add_to(device_arena& arena, tensors const& where, plain_vector<group_entry<typename Plan::rule>> const& groups,
              typename Plan::policies const& policies) {
    auto const values = value_layout_of<Plan>(where, all_, ranks_);
    auto const room = meeting_memory_of<Plan>(all_, ranks_, values.size());
    // Zeroed, because padding that belongs to no element is summed, too. It is never read.
    arena.add_zeros(sum_, std::size_t(room.sum));
    arena.add_zeros(wire_, std::size_t(room.sent));
    arena.add(parts_, std::size_t(room.received));
    if constexpr (Plan::shards) {
      arena.add_zeros(values_, std::size_t(room.values));
      segments_ = values.segments();
      std::vector<arena_offset> on_wire, of_values;
      for (std::int64_t c = 0; c < where.chunks(); ++c) {
        auto const t = std::size_t(where.tensor_of_chunk[std::size_t(c)]);
        bucket const& b = all_.buckets[all_.bucket_of[t]];
        auto const q = all_.owner(where, c);
        auto const [first, place] = all_.in_part(where, t, q);
        on_wire.push_back({first, std::int64_t(q) * b.room + place});
        of_values.push_back(values.place(where, all_, t, q));
      }
      arena.add_copy(on_wire_, on_wire);
      arena.add_copy(of_values_, of_values);
      arena.add_copy(chunks_, where.own.chunks);
      arena.add_copy(arena_offsets_, where.own.arena_offsets);
      if constexpr (Plan::has_matrices) {
        arena.add_copy(rule_offsets_, where.own.rule_offsets);
        std::vector<arena_offset> of_tensors;
        for (std::size_t t = 0; t < where.tensors.size(); ++t)
          of_tensors.push_back(values.place(where, all_, t, std::size_t(comm_->rank())));
        arena.add_copy(value_offsets_, of_tensors);
      }
    } else if constexpr (Plan::overlaps) {
      std::vector<arena_offset> arena_offsets;
      for (std::size_t t = 0; t < where.tensors.size(); ++t) {
        auto const [first, place] = all_.in_bucket(where, t);
        arena_offsets.push_back({first, all_.buckets[all_.bucket_of[t]].part + place});
      }
      arena.add_copy(arena_offsets_, arena_offsets);
    }
    if constexpr (Plan::overlaps) marks_.start(where, all_);
    std::vector<callers_record> records;
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      auto const& x = where.tensors[t];
      auto* const gradient = where.callers_gradient(t).at;
      records.push_back({x.value, static_cast<typename types<typename Plan::own_gradient>::pointer>(gradient), x.count,
                         x.first_chunk, x.arena, x.group, packets_aligned(x.value) && packets_aligned(gradient),
                         x.types, x.matrix});
    }
    arena.add_copy(records_, records);
    collective_sums start;
    start.ranks = ranks_;
    start.wire_divisor = wire_divisor_ = wire_divisor_of<wire>(ranks_);
    start.groups = hash_of(groups, policies);
    arena.add_copy(now_, std::array{start});
    arena.add(before_, 1);
    arena.add_copy(ticket_, std::array{gather_ticket{0, double(number_ % 256 << 24)}});
  }
  /// After the allocation: gives the policy its pointers.
  void show_in(typename Plan::policies& policies) {
    auto& parallel = get<kind::parallel>(policies);
    parallel.now = now_;
    parallel.progress = comm_->marks();
    meeting_of_gradients_ = comm_->name_meeting("gradients");
    meeting_of_values_ = comm_->name_meeting("values");
    if (Plan::overlaps || segments_.size() > 1) own_stream_ = new_stream(), forks_ = new_event(), joins_ = new_event();
    if constexpr (Plan::overlaps) {
      makers_.resize(all_.buckets.size());
      meeting_of_buckets_ = comm_->name_meeting("a bucket of gradients");
    }
  }

  void show_in(device_view<Plan>& view) const {
    view.ranks = {reinterpret_cast<sum*>(sum_), values_, arena_offsets_, rule_offsets_, chunks_, value_offsets_};
    if constexpr (Plan::shards && !Plan::has_matrices)
      view.ranks.values += comm_->rank() * all_.part * Plan::largest_value;
    if constexpr (Plan::adds_when_read)
      view.ranks.sent = {reinterpret_cast<wire const*>(parts_), all_.buckets[0].room, ranks_};
  }
  /// The view of the caller's gradients.
  device_view<callers> callers_of(device_view<Plan> const& v) const {
    device_view<callers> own{};
    own.tensors = records_;
    own.tensor_of_chunk = v.tensor_of_chunk;
    own.chunk_count = v.chunk_count;
    own.tensor_count = v.tensor_count;
    own.group_count = v.group_count;
    own.control = v.control;
    own.groups = v.groups;
    return own;
  }

  /// Of the groups, which ranks compare.
  template <class Groups>
  static std::uint64_t hash_of(Groups const& groups, typename Plan::policies const& policies) {
    return hash_of_groups<Plan>(groups, policies);
  }

  /// Throws std::invalid_argument on all ranks if facts_now() of them differ. Waits for the stream.
  template <class Groups, class Owned>
  void agree(device_view<Plan> const& v, Owned const& owned, tensors const& where, Groups const& groups,
             control_block const& c, loss_scale_state const& scale,
             std::span<memory_of<typename Plan::rule> const> memories, std::vector<std::string> const& of_matrices) {
    auto const prints = prints_of(v, owned, *stream_, [&] { wait(); });
    auto const facts = facts_now<Plan>(where, groups, c, scale, memories, prints, of_matrices);
    std::string difference;
    std::uint64_t none = 0;
    meet("agree()", [&] { difference = difference_in(through_device{*comm_, *stream_}, facts, none, have_diverged); });
    if (!difference.empty()) throw std::invalid_argument(difference);
  }

  /// The text of each rank. Waits for the stream.
  std::vector<std::string> exchange(std::string const& mine) {
    std::vector<std::string> texts;
    meet("an exchange of texts", [&] { texts = gathered_texts(through_device{*comm_, *stream_}, mine); });
    return texts;
  }

  collective_sums read_now() const { return read(now_); }

  /// Sums weights, losses and the gradients in the caller's memory. The kernel that decides the step ends the meeting.
  template <class Groups>
  void reduce(device_view<Plan> const& v, control_view<Plan> const& w, Groups const& groups, sending how,
              step_call const& call, char const* name, bool zero) {
    [[maybe_unused]] auto const range = begin_range<Plan>("reduce gradients");
    if constexpr (Plan::overlaps) {
      if (by_marks(how)) require_marks(groups, name);
      marks_.begin(how);
      while (!marks_.all_sent()) send_next(v, zero, call);
      await_buckets();
    }
    launch(enter_reduction<Plan>, 1, 1, *stream_, v, w, call, calls::call_of(name) + kind_of_look<Plan>(how),
           meeting_of_gradients_, before_);
    if constexpr (!Plan::overlaps) send(v, all_.buckets[0], zero, call, *stream_);
    comm_->all_reduce(&now_->weights, collective_sum_count, *stream_);
    if constexpr (Plan::overlaps) marks_.end(how);
  }

  /// Marks the gradient of a tensor as ready after the work enqueued on `maker` so far. Sends complete buckets unless
  /// more micro-batches follow.
  template <class Groups>
  void ready(device_view<Plan> const& v, Groups const& groups, std::size_t tensor, cudaStream_t maker, bool sends,
             bool zero) {
    marks_.mark(tensor);
    if (!sends) return;
    makers_[all_.bucket_of[tensor]].mark(maker);
    while (marks_.next_is_complete(groups)) send_next(v, zero, {});
  }
  /// Ends a micro-batch that sends nothing.
  void end_unsent() { marks_.end(sending::marked); }
  template <class Groups> void require_marks(Groups const& groups, char const* name) const {
    if (!Plan::parallel_policy::missing_zero) marks_.require_all(groups, name);
  }
  bool any_ready() const { return marks_.any(); }
  /// Makes the optimizer's stream wait for what is being sent on the internal one.
  void await_buckets() {
    if (forked_) order(own_stream_.get(), *stream_, joins_);
    forked_ = false;
  }
  /// Broadcast the values, device memory or host memory of `root`. The last one waits for the stream.
  void broadcast_values(int root) {
    for (auto const& [value, bytes] : callers_values_) broadcast(value, bytes, root);
  }
  void rebind(std::vector<tensor_addresses> const& addresses) {
    for (std::size_t t = 0; t < addresses.size(); ++t) callers_values_[t].at = addresses[t].value;
    enqueue_addresses(records_, true, addresses, *stream_);
  }
  void broadcast(void* data, std::int64_t bytes, int root) {
    require_root(root, ranks_);
    comm_->broadcast(static_cast<std::byte*>(data), bytes, root, *stream_);
  }
  void broadcast_host(void* data, std::int64_t bytes, int root) {
    wait();  // with a deadline, as in join()
    auto* const host = static_cast<std::byte*>(data);
    device_array<std::byte> const there(std::vector<std::byte>(host, host + bytes), *stream_);
    broadcast(there.get(), bytes, root);
    wait();
    there.read(host, *stream_, std::size_t(bytes));
  }
  /// Ends a meeting after which no kernel decides a step.
  void leave() { launch(leave_collective<comm_progress>, 1, 1, *stream_, comm_->marks(), now_); }

  /// Sends values before gather(), on an internal stream: the segments that are final once the first `matrices` of this
  /// rank are, but never the last segment.
  void send_final_values(std::size_t matrices) {
    auto const is_final = [&] { return segments_[sent_].ends[std::size_t(comm_->rank())] <= matrices; };
    while (sent_ + 1 < segments_.size() && is_final()) {
      if (sent_ == 0) enter();
      order(*stream_, own_stream_.get(), forks_);
      forked_ = true;
      send_values(own_stream_.get());
    }
  }
  /// Copies this rank's values to where they are changed. gather() sends them to the tensors of all ranks: all or none.
  void stage(device_view<Plan> const& v, std::int64_t chunks) {
    sent_ = 0;
    launch_packets(false, chunks, *stream_, stage_packets<Plan>{v});
  }
  void gather(device_view<Plan> const& v, bool is_step) {
    [[maybe_unused]] auto const range = begin_range<Plan>("gather values");
    if (sent_ == 0) enter();
    await_buckets();
    while (sent_ < segments_.size()) send_values(*stream_);
    comm_->all_reduce(&ticket_->sum, 1, *stream_);
    launch_packets(false, v.chunk_count, *stream_, commit_packets<Plan>{v, values_, of_values_, ticket_, ranks_});
    launch(leave_gather<Plan>, 1, 1, *stream_, v, ticket_, ranks_, comm_->marks(), is_step ? before_ : nullptr);
  }

 private:
  void enter() { launch(enter_gather<comm_progress>, 1, 1, *stream_, ticket_, comm_->marks(), meeting_of_values_); }
  /// Sends the next segment of values.
  void send_values(cudaStream_t s) {
    auto const& [first, room, ends] = segments_[sent_++];
    std::int64_t const bytes = room * Plan::largest_value;
    std::byte* const to = values_ + first * Plan::largest_value;
    if (bytes > 0) comm_->all_gather(static_cast<std::byte const*>(to) + comm_->rank() * bytes, to, bytes, s);
  }
  /// Sends the next bucket, on an internal stream.
  void send_next(device_view<Plan> const& v, bool zero, step_call const& call) {
    std::size_t const next = marks_.take_next();
    cudaStream_t const s = own_stream_.get();
    if (!forked_) order(*stream_, s, forks_);  // the previous step must have read its sums
    forked_ = true;
    makers_[next].order_before(s);
    launch(enter_bucket<comm_progress>, 1, 1, s, comm_->marks(), meeting_of_buckets_);
    send(v, all_.buckets[next], zero, call, s);
    launch(leave_bucket<comm_progress>, 1, 1, s, comm_->marks());
  }
  void send(device_view<Plan> const& v, bucket const& b, bool zero, step_call const& call, cudaStream_t s) {
    auto* const to = reinterpret_cast<sum*>(sum_) + b.part;
    auto* const wires = Plan::shards || ordered ? reinterpret_cast<wire*>(wire_) : reinterpret_cast<wire*>(to);
    pack(v, b, wires, zero, call, s);
    if constexpr (!ordered) {
      if constexpr (Plan::shards) comm_->reduce_scatter(wires, to, b.room, s);
      else comm_->all_reduce(to, ranks_ * b.room, s);
    } else {
      auto* const parts = reinterpret_cast<wire*>(parts_);
      comm_->all_to_all(wires, parts, b.room, s);
      if constexpr (!Plan::adds_when_read) {
        sum* const own = Plan::shards ? to : to + comm_->rank() * b.room;
        launch(add_parts<sum, wire>, (b.room / packet_size + packet_threads - 1) / packet_threads, packet_threads, s,
               own, parts, b.room, ranks_);
        if constexpr (!Plan::shards) comm_->all_gather(own, to, b.room, s);
      }
    }
  }
  /// Writes a bucket to the wire.
  void pack(device_view<Plan> const& v, bucket const& b, wire* wires, bool zero, step_call const& call,
            cudaStream_t s) {
    each_run(
        b, chunks_of_tensor_, [&](std::size_t t) { return Plan::overlaps && marks_.lacks(t); },
        [&](std::int64_t first, std::int64_t count, arena_offset const& place, bool absent) {
          send_packets<callers> const send{callers_of(v), wires, place,  on_wire_, first,
                                           wire_divisor_, zero,  absent, call};
          launch_packets(false, count, s, send);
        });
  }

  int ranks_ = 1, meeting_of_gradients_ = 0, meeting_of_buckets_ = 0, meeting_of_values_ = 0;
  double wire_divisor_ = 1;
  bool forked_ = false;
  std::size_t sent_ = 0;  // segments of values since stage()
  partition all_;
  std::vector<value_layout::segment> segments_;
  std::vector<tensor_chunks> chunks_of_tensor_;
  struct memory { void* at; std::int64_t bytes; };
  std::vector<memory> callers_values_;
  std::byte *sum_ = nullptr, *wire_ = nullptr, *parts_ = nullptr, *values_ = nullptr;
  arena_offset *on_wire_ = nullptr, *of_values_ = nullptr, *arena_offsets_ = nullptr, *rule_offsets_ = nullptr,
               *value_offsets_ = nullptr;
  std::int64_t* chunks_ = nullptr;
  callers_record* records_ = nullptr;
  collective_sums* now_ = nullptr;
  control_block* before_ = nullptr;
  gather_ticket* ticket_ = nullptr;

  ready_marks marks_;
  std::vector<stream_marks> makers_;  // of each bucket's gradients
  owned_stream own_stream_;
  owned_event forks_, joins_;
};

}  // namespace descent::detail
