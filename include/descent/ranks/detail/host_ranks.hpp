// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/memory.hpp>
#include <descent/engine/host/memory_check.hpp>
#include <descent/ranks/detail/host_rank_calls.hpp>
#include <descent/engine/host/single_rank.hpp>
#include <descent/ranks/detail/divergence.hpp>
#include <descent/ranks/detail/ordered_sum.hpp>
#include <descent/engine/step/profiler.hpp>
#include <descent/ranks/detail/ready_marks.hpp>
#include <descent/ranks/detail/shared_layout.hpp>
#include <descent/engine/step/collective_sums.hpp>
#include <descent/engine/step/packet_io.hpp>
#include <descent/ranks/detail/partition.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// The host backend's exchanges with other ranks.
namespace descent::detail {

template <class Plan>
requires(Plan::parallel) class host_ranks<Plan> : public rank_calls<typename Plan::parallel_policy::communicator_type> {
  using tensors = layout<typename Plan::value, typename Plan::gradient>;
  using entries = plain_vector<group_entry<typename Plan::rule>>;
  using comm_type = typename Plan::parallel_policy::communicator_type;
  static_assert(!comm_type::on_device, "host{} needs a communicator for host memory, such as comm::threads");
  using wire = typename Plan::gradient_sum::wire;
  using sum = typename Plan::gradient_sum::sum;
  static constexpr bool ordered = Plan::gradient_sum::ordered;
  using calls = rank_calls<comm_type>;
  using calls::comm_, calls::ranks_;

 public:
  using calls::together;

  explicit host_ranks(typename Plan::policies& policies) : calls(*get<kind::parallel>(policies).comm) {}

  /// Waits for all ranks. Throws std::invalid_argument if they disagree about the training setup.
  void join(tensors const& where, entries const& groups, typename Plan::policies& policies) {
    auto const facts = [&] {
      auto all = facts_of<Plan>(where, groups, policies);
      if constexpr (Plan::shares_scale) all.push_back(fact_of_shared(policies.shared->state));
      return all;
    };
    calls::join_with(facts, [&] { return meet(where, policies), std::string(); });
    set_groups(groups, policies);
  }
  void set_groups(entries const& groups, typename Plan::policies const& policies) {
    calls::set_groups_hash(hash_of_groups<Plan>(groups, policies));
  }

  /// Throws std::invalid_argument on all ranks if facts_now(now...) differ.
  template <class... Now> void agree(Now const&... now) {
    auto const facts = facts_now<Plan>(now...);
    std::string difference;
    std::uint64_t none = 0;
    together([&] { difference = difference_in(comm_, facts, none, have_diverged); });
    if (!difference.empty()) throw std::invalid_argument(difference);
  }
  /// The text of each rank.
  std::vector<std::string> exchange(std::string const& mine) {
    std::vector<std::string> texts;
    together([&] { texts = gathered_texts(comm_, mine); });
    return texts;
  }
  sum* gradients() const { return reinterpret_cast<sum*>(sum_.get()); }

  /// Sums the weights and the gradients that pack(bucket) writes to the wire. All ranks must be in the same call.
  /// `facts` describes this rank's call.
  template <class Groups, class Facts, class Pack>
  void reduce(Groups const& groups, sending how, double weight, double loss, char const* name, double call,
              Facts const& facts, Pack const& pack) {
    [[maybe_unused]] auto const range = begin_range<Plan>("reduce gradients");
    auto const agree = [&] {
      now_.enter(weight, loss, call);
      comm_.all_reduce(&now_.weights, collective_sum_count);
      if (now_.differ()) calls::refuse_call(name, facts());
    };
    if constexpr (Plan::overlaps) {
      if (by_marks(how)) require_marks(groups, name);
      marks_.begin(how);
      together([&] {
        while (!marks_.all_sent()) send_next(pack);
        agree();
      });
      marks_.end(how);
    } else {
      together([&] {
        agree();
        send(all_.buckets[0], pack);
      });
    }
  }

  /// Marks the gradient of a tensor as ready. Sends complete buckets unless more micro-batches follow.
  template <class Groups, class Pack>
  void ready(Groups const& groups, std::size_t tensor, bool sends, Pack const& pack) {
    calls::require_ranks();
    marks_.mark(tensor);
    while (sends && marks_.next_is_complete(groups)) together([&] { send_next(pack); });
  }
  /// Ends a micro-batch that sends nothing.
  template <class Groups> void end_unsent(Groups const& groups, bool needs_marks, char const* name) {
    if (needs_marks) require_marks(groups, name);
    marks_.end(sending::marked);
  }
  bool any_ready() const { return marks_.any(); }
  bool lacks(std::size_t tensor) const { return Plan::overlaps && marks_.lacks(tensor); }

  void broadcast(void* data, std::int64_t bytes, int root) {
    require_root(root, ranks_);
    together([&] { comm_.broadcast(static_cast<std::byte*>(data), bytes, root); });
  }
  /// Sums x over ranks. Each element comes from one rank; the others have 0.
  void add(std::vector<double>& x) {
    together([&] { comm_.all_reduce(x.data(), std::int64_t(x.size())); });
  }

  /// The place of a chunk's elements on the wire, and that of a tensor's elements in the sum.
  wire* place_on_wire(tensors const& where, std::int64_t chunk) const {
    auto const t = std::size_t(where.tensor_of_chunk[std::size_t(chunk)]);
    bucket const& b = all_.buckets[all_.bucket_of[t]];
    std::int64_t const at = where.arena_at(chunk);
    if constexpr (Plan::shards) {
      std::size_t const q = all_.owner(where, chunk);
      return wires() + std::int64_t(q) * b.room + all_.in_part(where, t, q)(at);
    } else if constexpr (ordered) {
      return wires() + all_.in_bucket(where, t)(at);
    } else {
      return gradients() + b.part + all_.in_bucket(where, t)(at);
    }
  }
  arena_offset place_of(tensors const& where, std::size_t tensor) const {
    arena_offset place = all_.in_bucket(where, tensor);
    place.part += all_.buckets[all_.bucket_of[tensor]].part;
    return place;
  }
  double wire_divisor() const { return 1 / now_.wire_divisor; }

  /// Saves the values of this rank's part until gather() is done.
  void keep(tensors const& where) { copy_own(where, kept()); }
  /// Exchanges the values of all ranks' parts. If that fails, restores what keep() saved.
  void gather(tensors const& where) {
    [[maybe_unused]] auto const range = begin_range<Plan>("gather values");
    try {
      together([&] {
        std::int64_t const part = all_.part * Plan::largest_value;
        std::byte* const mine = values_.get() + ranks_ * part;
        copy_own(where, mine);
        comm_.all_gather(static_cast<std::byte const*>(mine), values_.get(), part);
        for (int r = 0; r < ranks_; ++r)
          if (r != comm_.rank()) put_part(where, r, values_.get() + r * part);
      });
    } catch (...) {
      put_part(where, comm_.rank(), kept());
      throw;
    }
  }

 private:
  /// Broadcasts the values of rank 0, and allocates.
  void meet(tensors const& where, typename Plan::policies& policies) {
    get<kind::parallel>(policies).now = &now_;
    for (auto const& x : where.tensors)
      comm_.broadcast(static_cast<std::byte*>(static_cast<void*>(x.value)), x.count * x.value_size(), 0);
    all_ = partition_of<Plan>(where, policies);
    if constexpr (Plan::overlaps) marks_.start(where, all_);
    auto const room = meeting_memory_of<Plan>(all_, ranks_, all_.part);
    sum_ = zeroed(room.sum);
    wire_ = zeroed(room.sent);
    parts_ = zeroed(room.received);
    values_ = allocate_host(std::size_t(room.values));
    now_.ranks = ranks_;
    now_.wire_divisor = wire_divisor_of<wire>(ranks_);
  }
  static host_memory zeroed(std::int64_t bytes) {
    host_memory m = allocate_host(std::size_t(bytes));
    if (bytes) std::memset(m.get(), 0, std::size_t(bytes));
    return m;
  }
  wire* wires() const { return reinterpret_cast<wire*>(wire_.get()); }

  /// Packs the gradients of a bucket and sums them over ranks.
  template <class Pack> void send(bucket const& b, Pack const& pack) {
    pack(b);
    sum* const to = gradients() + b.part;
    if constexpr (!ordered) {
      if constexpr (Plan::shards) comm_.reduce_scatter(wires(), to, b.room);
      else comm_.all_reduce(to, ranks_ * b.room);
    } else {
      comm_.all_to_all(wires(), reinterpret_cast<wire*>(parts_.get()), b.room);
      sum* const own = Plan::shards ? to : to + comm_.rank() * b.room;
      auto const* parts = reinterpret_cast<wire const*>(parts_.get());
      add_in_order(own, b.room, ranks_, [&](int r) { return parts + r * b.room; });
      if constexpr (!Plan::shards) comm_.all_gather(own, to, b.room);
    }
  }
  template <class Pack> void send_next(Pack const& pack) { send(all_.buckets[marks_.take_next()], pack); }
  template <class Groups> void require_marks(Groups const& groups, char const* name) const {
    calls::require_ranks();
    if (!Plan::parallel_policy::missing_zero) marks_.require_all(groups, name);
  }

  std::byte* kept() const { return values_.get() + (ranks_ + 1) * all_.part * Plan::largest_value; }
  void copy_own(tensors const& where, std::byte* to) const {
    each_piece(where, comm_.rank(), [&](std::byte* value, std::int64_t at, std::int64_t bytes) {
      std::memcpy(to + at, value, std::size_t(bytes));
    });
  }
  void put_part(tensors const& where, int rank, std::byte const* from) const {
    each_piece(where, rank, [&](std::byte* value, std::int64_t at, std::int64_t bytes) {
      std::memcpy(value, from + at, std::size_t(bytes));
    });
  }
  /// Calls f(value, offset in bytes, bytes) for each tensor's piece of one rank's part.
  template <class F> void each_piece(tensors const& where, int rank, F const& f) const {
    for (std::size_t t = 0; t < where.tensors.size(); ++t) {
      auto const& x = where.tensors[t];
      std::int64_t const part = all_.buckets[all_.bucket_of[t]].part;
      if (auto const [begin, size] = all_.part_of(where, t, std::size_t(rank)); size > 0)
        f(static_cast<std::byte*>(static_cast<void*>(x.value)) + begin * x.value_size(),
          (part + all_.in_part(where, t, std::size_t(rank))(x.arena + begin)) * Plan::largest_value,
          size * x.value_size());
    }
  }

  collective_sums now_;
  partition all_;
  ready_marks marks_;
  host_memory wire_, parts_, sum_, values_;
};

}  // namespace descent::detail
