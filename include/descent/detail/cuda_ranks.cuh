// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/detail/agreement.hpp>
#include <descent/detail/device_memory.hpp>
#include <descent/detail/launch.cuh>
#include <descent/detail/rank_kernels.cuh>
#include <descent/detail/shares.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Where the CUDA backend meets other ranks. Everything is enqueued; a collective that is given up leaves behind what
/// the next kernels see and leave alone.
namespace descent::detail {

/// One rank: nothing.
template <class Plan> class cuda_ranks {
 public:
  template <class... Ts> void join(Ts const&...) {}
  void start() {}
};

template <class Plan> requires(Plan::parallel) class cuda_ranks<Plan> {
  using tensors = layout<typename Plan::value, typename Plan::gradient>;
  using callers = callers_plan<Plan>;
  using callers_record = tensor_record<typename Plan::value, typename Plan::own_gradient>;
  using comm_type = typename Plan::team::communicator_type;
  static_assert(comm_type::on_device, "cuda{} needs a communicator for device memory, such as comm::nccl");
  static_assert(!grows_batch<typename Plan::accumulation>,
                "accumulate_by cannot be combined with ranks on cuda{}: the host must know which calls send gradients");
  using wire = typename Plan::reduced::wire;
  using sum = typename Plan::reduced::sum;
  static constexpr bool ordered = Plan::reduced::ordered;

 public:
  /// Waits for all ranks. Throws std::invalid_argument where they are about to train different things.
  void join(tensors const& where, std::vector<group_entry<typename Plan::rule>> const& groups,
            typename Plan::policies& policies, cudaStream_t stream) {
    auto& team = static_cast<typename Plan::team&>(policies);
    comm_ = team.comm;
    stream_ = stream;
    ranks_ = comm_->size();
    through_device over{comm_, stream};
    joined_ = true;  // what fails from here on, the others wait for
    std::string const difference = difference_in(over, facts_of<Plan>(where, groups, policies), number_);
    joined_ = difference.empty();
    if (!joined_) throw std::invalid_argument(difference);
    for (auto const& x : where.tensors) {
      callers_values_.push_back({x.value, x.count * x.value_size()});
      broadcast(x.value, callers_values_.back().bytes, 0);
    }

    own_ = where.own;
    auto const room = meeting_memory_of<Plan>(where, ranks_);
    room_ = room.part;
    // What no element has a place for is added, too, and must be a number.
    sum_ = {std::vector<std::byte>(std::size_t(room.sum)), stream_};
    wire_ = {std::vector<std::byte>(std::size_t(room.sent)), stream_};
    parts_ = device_array<std::byte>(std::size_t(room.received));
    if constexpr (Plan::shards) {
      values_ = {std::vector<std::byte>(std::size_t(ranks_ * room_ * Plan::largest_value)), stream_};
      auto const shares = shares_of(where, ranks_);
      std::vector<place> places;
      for (std::int64_t c = 0; c < where.chunks(); ++c) {
        std::size_t const q = share_of(shares, c);
        places.push_back({shares[q].first, std::int64_t(q) * room_});
      }
      places_ = {places, stream_};
    }
    std::vector<callers_record> records;
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      auto const& x = where.tensors[t];
      auto* const gradient = where.callers_gradient(t).at;
      records.push_back({x.value, static_cast<typename types<typename Plan::own_gradient>::pointer>(gradient), x.count,
                         x.first_chunk, x.arena, x.group, packets_aligned(x.value) && packets_aligned(gradient),
                         x.types, x.matrix});
    }
    records_ = {records, stream_};
    agreed start;
    start.ranks = ranks_;
    start.shrink = shrink_of<wire>(ranks_);
    now_ = {std::vector<agreed>{start}, stream_};
    before_ = device_array<control_block>(1);
    ticket_ = device_array<double>(1);
    team.now = now_.get();
    team.progress = comm_->marks();
    shrink_ = start.shrink;
    meeting_of_gradients_ = comm_->name_meeting("gradients");
    meeting_of_values_ = comm_->name_meeting("values");
    wait();
  }

  /// The optimizer is complete.
  void start() { started_ = true; }
  /// The others wait for an optimizer that was not completed.
  ~cuda_ranks() {
    if (joined_ && !started_) comm_->abort("a rank could not make its optimizer");
  }

  void show_in(device_view<Plan>& view) const {
    view.team = {reinterpret_cast<sum*>(sum_.get()), nullptr, own_.first_chunk, own_.first};
    if constexpr (Plan::shards)
      view.team.values = values_.get() + comm_->rank() * room_ * Plan::largest_value;
  }
  /// The view of the caller's gradients.
  device_view<callers> callers_of(device_view<Plan> const& v) const {
    device_view<callers> own{};
    own.tensors = records_.get();
    own.tensor_of_chunk = v.tensor_of_chunk;
    own.chunk_count = v.chunk_count;
    own.tensor_count = v.tensor_count;
    own.group_count = v.group_count;
    own.control = v.control;
    own.groups = v.groups;
    return own;
  }

  void check() const { comm_->check(); }
  void wait() const { comm_->wait(stream_); }
  agreed read_now() const {
    agreed now;
    require_cuda(cudaMemcpyAsync(&now, now_.get(), sizeof now, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    wait();
    return now;
  }

  /// Sums weights, losses and the gradients in the caller's memory. The meeting ends with the kernel that decides.
  void reduce(device_view<Plan> const& v, control_view<Plan> const& w, step_call const& call, char const* name,
              bool zero) {
    launch(enter_reduction<Plan>, 1, 1, stream_, v, w, call, call_of(name, number_), meeting_of_gradients_,
           before_.get());
    auto* const wires = reinterpret_cast<wire*>(Plan::shards || ordered ? wire_.get() : sum_.get());
    using body = send_packets<callers>;
    launch(each_packet<body>, v.chunk_count, packet_threads, stream_,
           body{callers_of(v), wires, places_.get(), shrink_, zero});
    auto* const to = reinterpret_cast<sum*>(sum_.get());
    if constexpr (!ordered) {
      if constexpr (Plan::shards) comm_->reduce_scatter(wires, to, room_, stream_);
      else comm_->all_reduce(to, ranks_ * room_, stream_);
    } else {
      auto* const parts = reinterpret_cast<wire*>(parts_.get());
      comm_->all_to_all(wires, parts, room_, stream_);
      sum* const own = Plan::shards ? to : to + comm_->rank() * room_;
      launch(add_parts<sum, wire>, (room_ / packet_size + packet_threads - 1) / packet_threads, packet_threads,
             stream_, own, parts, room_, ranks_);
      if constexpr (!Plan::shards) comm_->all_gather(own, to, room_, stream_);
    }
    comm_->all_reduce(&now_.get()->weights, agreed_sums, stream_);
  }
  /// Gives all what one rank has: its values, what is in device memory, and in host memory, which waits.
  void broadcast_values(int root) {
    for (auto const& [value, bytes] : callers_values_) broadcast(value, bytes, root);
  }
  void broadcast(void* data, std::int64_t bytes, int root) {
    require_root(root, ranks_);
    comm_->broadcast(static_cast<std::byte*>(data), bytes, root, stream_);
  }
  void broadcast_host(void* data, std::int64_t bytes, int root) {
    auto* const host = static_cast<std::byte*>(data);
    device_array<std::byte> const there(std::vector<std::byte>(host, host + bytes), stream_);
    broadcast(there.get(), bytes, root);
    wait();
    there.read(host, stream_, std::size_t(bytes));
  }
  /// The sum over ranks of what only one of them has.
  void add(double* x, std::int64_t n) { comm_->all_reduce(x, n, stream_); }
  /// Ends a meeting that no kernel decides about.
  void leave() { launch(leave_meeting<comm_progress>, 1, 1, stream_, comm_->marks(), now_.get()); }

  /// The own values to where they are changed, and from there to the tensors of all ranks: all of them or none.
  void stage(device_view<Plan> const& v) {
    launch(each_packet<stage_packets<Plan>>, own_.chunks, packet_threads, stream_, stage_packets<Plan>{v});
  }
  void gather(device_view<Plan> const& v, bool is_step) {
    launch(enter_gather<comm_progress>, 1, 1, stream_, ticket_.get(), comm_->marks(), meeting_of_values_);
    std::int64_t const part = room_ * Plan::largest_value;
    comm_->all_gather(static_cast<std::byte const*>(values_.get()) + comm_->rank() * part, values_.get(), part,
                      stream_);
    comm_->all_reduce(ticket_.get(), 1, stream_);
    using body = commit_packets<Plan>;
    launch(each_packet<body>, v.chunk_count, packet_threads, stream_,
           body{v, values_.get(), places_.get(), ticket_.get(), ranks_});
    launch(leave_gather<Plan>, 1, 1, stream_, v, ticket_.get(), ranks_, comm_->marks(),
           is_step ? before_.get() : nullptr);
  }

 private:
  /// Collectives of a few bytes in host memory.
  struct through_device {
    comm_type* comm;
    cudaStream_t stream;
    int rank() const { return comm->rank(); }
    int size() const { return comm->size(); }
    void all_gather(std::byte const* from, std::byte* to, std::int64_t n) const {
      if (n == 0) return;
      std::vector<std::byte> const mine(from, from + n);
      device_array<std::byte> const in(mine, stream), out(std::size_t(n) * std::size_t(comm->size()));
      comm->all_gather(static_cast<std::byte const*>(in.get()), out.get(), n, stream);
      comm->wait(stream);
      out.read(to, stream, std::size_t(n) * std::size_t(comm->size()));
    }
  };

  comm_type* comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  int ranks_ = 1, meeting_of_gradients_ = 0, meeting_of_values_ = 0;
  std::int64_t room_ = 0;  // elements of one rank's part
  std::uint64_t number_ = next_number();  // of the optimizer, from join() on the same on all ranks
  double shrink_ = 1;
  bool joined_ = false, started_ = false;
  chunk_run own_;
  struct range {
    void* at;
    std::int64_t bytes;
  };
  std::vector<range> callers_values_;
  device_array<std::byte> sum_, wire_, parts_, values_;
  device_array<place> places_;
  device_array<callers_record> records_;
  device_array<agreed> now_;
  device_array<control_block> before_;
  device_array<double> ticket_;
};

}  // namespace descent::detail
