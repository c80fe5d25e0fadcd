// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/backends/systems.hpp>
#include <descent/engine/host/chunk_pass.hpp>
#include <descent/engine/host/control_data.hpp>
#include <descent/engine/host/memory.hpp>
#include <descent/engine/host/memory_check.hpp>
#include <descent/engine/host/rows.hpp>
#include <descent/engine/host/single_rank.hpp>
#include <descent/engine/step/prints.hpp>
#include <descent/engine/step/given_state.hpp>
#include <descent/engine/step/memory_guard.hpp>
#include <descent/engine/step/owned.hpp>
#include <descent/engine/step/packet.hpp>

#include <array>
#include <cstdint>
#include <vector>

/// The part of the host engine that owns memory for elements (masters, averages, slow weights, state), finds the
/// buffers of a chunk, and runs loops over chunks.
namespace descent::detail {

template <class Plan, class System> class host_storage {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using tensors = layout<typename Plan::value, typename Plan::gradient>;

 public:
  host_storage(host_control<Plan> const& control, host_ranks<Plan> const& ranks, host_rows<Plan> const& rows)
      : control_(control), where_(control.where), ranks_(ranks), rows_(rows) {
    if constexpr (has<Plan, kind::memory>) source = host_source(*get<kind::memory>(control.policies).where);
  }

  void allocate(std::array<bool, Plan::slots> const& used) {
    if constexpr (Plan::has_given)
      given =
          find_given<Plan>(where_, used, control_.policies, [](outside_memory const& m) { require_host_memory(m); });
    guard_.start(where_, *this, control_.policies);
    if constexpr (has<Plan, kind::perturbation>) make_saved();
    each_buffer<Plan>([&]<std::size_t I, class T>(char const*) {
      std::int64_t const n = is_slot<Plan>(I) ? rule_elements<Plan>(where_) : where_.own.size;
      bool const owns = is_used<Plan>(used, I) && !is_given(I);
      owned_[I] = owns ? allocate_host(std::size_t(n) * sizeof(T), source) : nullptr;
    });
  }
  /// Allocates memory for the values that ascend() or swap_in() replaces.
  void make_saved() {
    if (!saved_) saved_ = allocate_host(std::size_t(where_.arena * Plan::largest_value), source);
  }

  host_source source;
  std::conditional_t<Plan::has_given, given_state<Plan>, no_given> given;

  void* buffer(std::size_t number) const { return owned(0)[number].at; }
  /// Adds the memory of all elements that the step writes, other than values and gradients.
  void add_ranges(std::vector<memory_range>& ranges, tensors const& where) const {
    if constexpr (Plan::has_given) add_given_ranges<Plan>(ranges, where, given);
    add_owned_ranges<Plan>(ranges, where, owned(0), saved_.get());
  }
  std::byte* saved() const { return saved_.get(); }

  /// Each throws std::invalid_argument unless: calls can read this memory, and no step writes it; copy() can read it;
  /// values and gradients can be at these addresses.
  void require_input(outside_memory const& m, tensors const& where) {
    require_host_memory(m);
    guard_.refuse_overlap(m, where, *this);
  }
  void require_source(outside_memory const& m) const { require_host_memory(m); }
  void require_addresses(tensors const& where, std::vector<tensor_addresses> const& addresses) {
    require_host_tensors(where, addresses);
    guard_.rebind(where, addresses, *this, control_.policies, rows_);
  }

  bool is_initialized() const {
    if constexpr (Plan::has_given) return get<kind::state_memory>(control_.policies).initialized;
    else return false;
  }
  /// The owned buffers, from element `first` on.
  std::array<owned_buffer, owned_count<Plan>> owned(std::int64_t first) const {
    return owned_buffers<Plan>([&](std::size_t number) { return owned_[number].get(); }, first);
  }
  /// The buffers of a tensor, in whoever's memory.
  std::array<owned_buffer, owned_count<Plan>> owned_of(std::size_t tensor) const {
    auto buffers = owned(where_.tensors[tensor].arena);
    if constexpr (Plan::has_given) put_given(buffers, given[tensor]);
    return buffers;
  }
  /// Calls f(buffer, number of elements) for what all tensors own.
  template <class F> void each_owned(F const& f) const {
    if constexpr (Plan::has_given) {
      for (std::size_t t = 0; t < where_.tensors.size(); ++t)
        for (owned_buffer const& b : owned_of(t)) f(b, where_.tensors[t].count);
    } else {
      auto const all = owned(0);
      for (std::size_t b = 0; b < all.size(); ++b)
        f(all[b], is_slot<Plan>(b) ? rule_elements<Plan>(where_) : where_.own.size);
    }
  }
  owned_buffer updates_of(std::size_t tensor) const {
    return {reinterpret_cast<std::byte*>(rows_[tensor].updates), sizeof(std::int32_t)};
  }
  owned_buffer waiting_of(std::size_t tensor) const {
    return {reinterpret_cast<std::byte*>(rows_[tensor].waiting), sizeof(std::uint8_t)};
  }
  row_record const& rows_of_chunk(std::int64_t chunk) const {
    return rows_[std::size_t(where_.tensor_of_chunk[std::size_t(chunk)])];
  }
  /// The terms of a row: its own if rows count their own updates, otherwise the unit's.
  detail::unit_terms_of<Plan> row_unit(detail::unit_terms_of<Plan> const& u, [[maybe_unused]] std::int64_t chunk,
                                       [[maybe_unused]] std::int64_t row) const {
    if constexpr (Plan::per_row_step) {
      rule const& r = control_.rules[std::size_t(record(chunk).group)];
      return {terms_of_row<Plan>(r, rows_of_chunk(chunk).updates[row]), u.factor, false};
    } else {
      return u;
    }
  }

  template <class Record> std::size_t index_of(Record const& t) const {
    return std::size_t(&t - where_.tensors.data());
  }
  auto const& record(std::int64_t chunk) const {
    return where_.tensors[std::size_t(where_.tensor_of_chunk[std::size_t(chunk)])];
  }
  std::size_t tensor_or_group(std::int64_t chunk, bool tensor) const {
    return tensor ? control_.model.unit(std::size_t(where_.tensor_of_chunk[std::size_t(chunk)]))
                  : std::size_t(record(chunk).group);
  }
  std::size_t unit_terms_of(std::int64_t chunk) const { return tensor_or_group(chunk, Plan::unit_per_tensor); }
  double factor_of(std::int64_t chunk) const {
    return control_.factors[tensor_or_group(chunk, Plan::clip_over == scope::tensor)];
  }

  template <class Real> static auto spread(detail::unit_terms_of<Plan> const& u) {
    typename Plan::update::template terms<Real> k;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((real_at<Real>(k, I) = Real(real_at<real>(u.terms, I))), ...);
    }(std::make_index_sequence<members<Plan::update::template terms>>());
    return k;
  }

  /// Calls f(buffers, first element, count) for a chunk, with buffers of the tensor's types.
  template <class Real, int Types = 0, class F> void with_buffers(std::int64_t chunk, F const& f) const {
    auto const& t = record(chunk);
    if constexpr (Types + 1 < Plan::pairs)
      if (t.types != Types) return with_buffers<Real, Types + 1>(chunk, f);
    auto const [begin, size] = span_of(chunk, t);
    std::int64_t const from = Plan::shards && !t.matrix ? begin : 0;  // a rank owns a matrix as a whole
    f(buffers_of<typename Plan::template typed<Types>>(t, from), begin - from, size);
  }
  /// The extent of the packet at element i of `size`.
  static packet_extent part_of(int size, int i) {
    return size - i < packet_size ? packet_extent{size - i, false} : packet_extent{int(packet_size), true};
  }
  /// Calls f(buffers, element, packet_extent) for every packet of the `size` elements from `begin` on.
  template <class Buffers, class F>
  static void packets_of(Buffers const& x, std::int64_t begin, int size, F const& f) {
    int i = 0;
    for (; i + packet_size <= size; i += int(packet_size)) f(x, begin + i, packet_extent{int(packet_size), true});
    if (i < size) f(x, begin + i, packet_extent{size - i, false});
  }
  /// The same for every packet of a chunk.
  template <class Real, class F> void each_packet(std::int64_t chunk, F const& f) const {
    with_buffers<Real>(chunk, [&](auto const& x, std::int64_t begin, int size) { packets_of(x, begin, size, f); });
  }

  /// The same with the caller's gradients, even if the step reads a sum over ranks. f may use no other buffer.
  template <class Real, int Types = 0, class F> void each_own_packet(std::int64_t chunk, F const& f) const {
    if constexpr (!Plan::parallel) {
      each_packet<Real>(chunk, f);
    } else {
      auto const& t = record(chunk);
      if constexpr (Types + 1 < Plan::pairs)
        if (t.types != Types) return each_own_packet<Real, Types + 1>(chunk, f);
      using typed = own_plan<Plan, Types>;
      auto const [begin, size] = span_of(chunk, t);
      buffers<typed> x = Plan::shards ? buffers<typed>{} : buffers_of<typed>(t, 0);
      x.gradient = static_cast<typename typed::gradient*>(
          where_.own_gradients[std::size_t(where_.tensor_of_chunk[std::size_t(chunk)])].at);
      packets_of(x, begin, size, f);
    }
  }

  /// The buffers of a tensor from its element `from` on.
  template <class Typed, class Record> buffers<Typed> buffers_of(Record const& t, std::int64_t from = 0) const {
    std::int64_t first = t.arena;
    if constexpr (Plan::shards) first = where_.own.arena_offsets[index_of(t)](t.arena + from);
    using index = owned_index<Plan>;
    auto const at = [&]<class T>(std::size_t number, T*& p) {
      if (owned_[number]) p = reinterpret_cast<T*>(owned_[number].get()) + first;
    };
    buffers<Typed> x{static_cast<typename Typed::value*>(t.value) + from, nullptr, nullptr, {}, {}};
    if constexpr (!Plan::parallel) x.gradient = static_cast<typename Typed::gradient*>(t.gradient);
    else if constexpr (std::is_same_v<typename Typed::gradient, typename Plan::gradient>)
      x.gradient = ranks_.gradients() + (Plan::shards ? first : ranks_.place_of(where_, index_of(t))(t.arena));
    if constexpr (Plan::clips_rows)
      if (row_pieces const& rows = control_.row_clip.rows.of[control_.model.unit(index_of(t))]; rows.units)
        x.rows = {control_.row_clip.factors.data() + rows.first_row, rows.columns, rows.inverse, from};
    if constexpr (Typed::has_master) at(index::master, x.master);
    else x.master = x.value;
    if constexpr (Plan::has_extras) {
      each_kept<Plan>([&]<std::size_t I, class>(char const*) {
        if constexpr (I != index::master) at(I, x.extra.template at<I>());
      });
      x.extra.arena = t.arena + from;
      if constexpr (Plan::splits) x.extra.shift = control_.model.element_shift(index_of(t));
    }
    if constexpr (Plan::shards) first = rule_offset<Plan>(where_, index_of(t))(t.arena + from);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((x.slot[I] =
            owned_[I] ? owned_[I].get() + std::size_t(first) * sizeof(typename Plan::template slot<I>) : nullptr),
       ...);
    }(typename Plan::every_slot{});
    if constexpr (Plan::has_given) use_given(x, given[index_of(t)].data());
    return x;
  }

  void copy(void* to, void const* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }

  /// Runs the body on every chunk that this rank updates, on those that follow the rule, or on all.
  template <class Body> void for_chunks(Body const& body) {
    for_first(body, Plan::shards ? std::ssize(where_.own.chunks) : where_.chunks());
  }
  template <class Body> void for_rule_chunks(Body const& body) {
    for_first(body, Plan::shards ? where_.own.rule_chunks : where_.rule_chunks);
  }
  template <class Body> void for_all_chunks(Body const& body) { run(body, where_.chunks()); }
  template <class Body> void for_chunks_in(chunk_run const& some, Body const& body) {
    run(shifted<Body>{&body, some.first_chunk}, some.chunks);
  }

  /// Copies from `old` everything that is owned for the rows that stay.
  void take(host_storage const& old, std::vector<row_move> const& moves) {
    for_chunks(take_body{this, &old, moves.data()});
    for (std::size_t t = 0; t < moves.size(); ++t)
      if (std::size_t const from = std::size_t(moves[t].old); moves[t].old >= 0) {
        [[maybe_unused]] auto const gather = [&](owned_buffer const& to, owned_buffer const& before) {
          gather_chunk(to, before, moves[t].from, 1, 0, rows_of(where_, t));
        };
        if constexpr (Plan::per_row_step) gather(updates_of(t), old.updates_of(from));
        if constexpr (Plan::keeps_selection) gather(waiting_of(t), old.waiting_of(from));
      }
  }

  /// The fingerprints of all tensors' buffers.
  std::vector<std::uint64_t> prints() {
    constexpr std::size_t n = prints_of_tensor<Plan>;
    std::vector<std::uint64_t> of_chunks(std::size_t(where_.chunks()) * n), all(where_.tensors.size() * n);
    for_all_chunks(print_body{this, of_chunks.data()});
    for (std::size_t i = 0; i < of_chunks.size(); ++i)
      all[std::size_t(where_.tensor_of_chunk[i / n]) * n + i % n] += of_chunks[i];
    return all;
  }

 private:
  struct take_body {
    host_storage* e;
    host_storage const* old;
    row_move const* moves;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const t = std::size_t(e->where_.tensor_of_chunk[std::size_t(chunk)]);
      if (moves[t].old < 0) return;
      auto const [begin, size] = span_of(chunk, e->record(chunk));
      auto const to = e->owned(e->record(chunk).arena);
      auto const from = old->owned(old->where_.tensors[std::size_t(moves[t].old)].arena);
      for (std::size_t b = 0; b < to.size(); ++b)
        if (to[b].at) gather_chunk(to[b], from[b], moves[t].from, e->where_.columns[t], begin, size);
    }
  };
  struct print_body {
    host_storage* e;
    std::uint64_t* prints;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const& t = e->record(chunk);
      auto const [begin, size] = span_of(chunk, t);
      std::uint64_t* to = prints + chunk * std::int64_t(prints_of_tensor<Plan>);
      auto const add = [&, begin = begin, size = size](void const* buffer, std::int64_t element) {
        if (buffer)
          for (std::int64_t i = begin; i < begin + size; ++i) *to += print_of(bits_at(buffer, i, element), i);
        ++to;
      };
      add(t.value, t.value_size());
      if constexpr (!Plan::shards) {
        auto const owned = e->owned_of(e->index_of(t));
        with_types<Plan>(t.types, [&]<class Typed>() {
          for (std::size_t b = 0; b < owned.size(); ++b)
            add(has_owned<Typed>(b) && !(t.matrix && is_slot<Plan>(b)) ? owned[b].at : nullptr, owned[b].size);
        });
      }
    }
  };

  template <class Body> struct listed {
    Body const* body;
    std::int64_t const* chunks;
    template <class Real> void operator()(std::int64_t i) const { body->template operator()<Real>(chunks[i]); }
  };
  template <class Body> struct shifted {
    Body const* body;
    std::int64_t first;
    template <class Real> void operator()(std::int64_t chunk) const { body->template operator()<Real>(first + chunk); }
  };
  /// Runs the body on the first `chunks` of this rank.
  template <class Body> void for_first(Body const& body, std::int64_t chunks) {
    if constexpr (Plan::shards) run(listed<Body>{&body, where_.own.chunks.data()}, chunks);
    else run(body, chunks);
  }
  template <class Body> void run(Body const& body, std::int64_t chunks) {
    chunk_pass<real, Body> const pass{&body, has_lanes()};
    each_of<System>(where_.elements, chunks, pass);
  }
  bool is_given([[maybe_unused]] std::size_t number) const {
    if constexpr (Plan::has_given) return detail::is_given<Plan>(given, number);
    else return false;
  }

  host_control<Plan> const& control_;
  tensors const& where_;
  host_ranks<Plan> const& ranks_;
  host_rows<Plan> const& rows_;
  memory_guard<Plan> guard_;
  std::array<host_memory, owned_count<Plan>> owned_;
  host_memory saved_;
};

}  // namespace descent::detail
