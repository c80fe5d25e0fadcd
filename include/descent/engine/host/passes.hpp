// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/host/storage.hpp>
#include <descent/engine/step/passes.hpp>
#include <descent/core/detail/containers.hpp>

#include <cstdint>

namespace descent::detail {

/// The part of the host engine that runs loops over values, state and gradients, except for the read-only passes of
/// host_gradients. A loop body's operator()<Real>(chunk) processes one chunk.
template <class Plan, class System> class host_passes {
  using rule = typename Plan::rule;
  using real = typename Plan::real;
  using entry = group_entry<rule>;

 public:
  host_passes(host_control<Plan> const& control, host_storage<Plan, System>& storage)
      : control_(control), storage_(storage) {}

  /// Initializes masters, averages, slow weights and state.
  void start(plain_vector<entry> const& groups) { storage_.for_rule_chunks(start_body{storage_, groups.data()}); }
  void update() { storage_.for_rule_chunks(update_body{storage_, control_}); }
  /// Zeroes the gradients of a skipped step.
  void zero(plain_vector<entry> const& groups) { storage_.for_chunks(zero_body{storage_, groups.data()}); }
  /// Keeps the rows that are selected if micro-batches wait, otherwise none.
  void keep_selection(bool waits) { storage_.for_chunks(keep_body{storage_, waits}); }
  void count_updates_of_rows() { storage_.for_chunks(count_body{storage_, control_}); }
  void ascend(plain_vector<entry> const& groups, real factor) {
    storage_.for_chunks(ascend_body{storage_, groups.data(), factor});
  }
  template <swap_target To> void swap_in(plain_vector<entry> const& groups) {
    storage_.for_chunks(swap_in_body<To>{storage_, control_, groups.data()});
  }

  /// Applies body to every packet, of all chunks or of some.
  template <class Body> void each(Body const& body) { storage_.for_chunks(every_packet<Body>{storage_, body}); }
  template <class Body> void each_in(chunk_run const& some, Body const& body) {
    storage_.for_chunks_in(some, every_packet<Body>{storage_, body});
  }
  /// The same with the caller's gradients, on every rank. The body may use no other buffer.
  template <class Body> void each_own(Body const& body) { storage_.for_all_chunks(own_packets<Body>{storage_, body}); }
  template <class Body> void each_own_scalar(Body const& body) {
    storage_.for_all_chunks(scalar_packets<Body>{storage_, body});
  }

 private:
  /// Applies body to every packet of a chunk, with the caller's gradients or with those that the step reads.
  template <class Body, bool Callers = false> struct every_packet {
    host_storage<Plan, System> const& storage;
    Body body;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
        body.template operator()<Typed, Real, reals<Real>>(x, i, part);
      };
      if constexpr (Callers) storage.template each_own_packet<Real>(chunk, one);
      else storage.template each_packet<Real>(chunk, one);
    }
  };
  template <class Body> using own_packets = every_packet<Body, true>;
  /// The same in scalar arithmetic, for bodies that cannot use packs.
  template <class Body> struct scalar_packets {
    host_storage<Plan, System> const& storage;
    Body body;
    template <class Real> void operator()(std::int64_t chunk) const {
      own_packets<Body>{storage, body}.template operator()<real>(chunk);
    }
  };
  struct start_body {
    host_storage<Plan, System> const& storage;
    entry const* groups;
    template <class Real> void operator()(std::int64_t chunk) const {
      rule const& r = groups[std::size_t(storage.record(chunk).group)].rule;
      storage.template each_packet<Real>(chunk,
                                         [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
                                           start_packet<Typed, Real>(x, i, part, r);
                                         });
    }
  };

  template <swap_target To> struct swap_in_body {
    host_storage<Plan, System> const& storage;
    host_control<Plan> const& control;
    entry const* groups;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const g = std::size_t(storage.record(chunk).group);
      rule const& r = control.rules[g];
      bool const stays = To == swap_target::ahead && groups[g].frozen;
      auto const one = [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
        swap_in_packet<Typed, Real, reals<Real>, To>(x, i, part, storage.saved(), r, stays);
      };
      storage.template each_packet<Real>(chunk, one);
    }
  };

  struct update_body {
    host_storage<Plan, System> const& storage;
    host_control<Plan> const& control;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const& u = control.units[storage.unit_terms_of(chunk)];
      if (u.frozen) return;
      auto const k = storage.template spread<Real>(u);
      Real const factor(u.factor);
      auto const step = control.step_terms;  // a copy: no store can alias it
      storage.template each_packet<Real>(chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i,
                                                                 packet_extent part) {
        if constexpr (Plan::selects_rows) {
          auto const one = [&](int j, std::int64_t row) {
            update_packet<Typed, real, 1>(x, i + j, {1, true}, u.factor, storage.row_unit(u, chunk, row).terms, step);
          };
          auto const all = [&](std::int64_t row) {
            if constexpr (!Plan::per_row_step) update_packet<Typed, Real>(x, i, part, factor, k, step);
            else
              update_packet<Typed, Real>(x, i, part, factor,
                                         storage.template spread<Real>(storage.row_unit(u, chunk, row)), step);
          };
          each_selected<Plan::per_row_step>(storage.rows_of_chunk(chunk), i, part.size, all, one);
        } else {
          update_packet<Typed, Real>(x, i, part, factor, k, step);
        }
      });
    }
  };

  struct zero_body {
    host_storage<Plan, System> const& storage;
    entry const* groups;
    template <class Real> void operator()(std::int64_t chunk) const {
      if (groups[std::size_t(storage.record(chunk).group)].frozen) return;
      storage.template each_packet<Real>(
          chunk, [&]<class Typed>(buffers<Typed> const& x, std::int64_t i, packet_extent part) {
            auto const all = [&](std::int64_t) { zero_packet<Typed, Real>(x, i, part); };
            if constexpr (Plan::selects_rows)
              each_selected<false>(storage.rows_of_chunk(chunk), i, part.size, all,
                                   [&](int j, std::int64_t) { zero_packet<Typed, real, 1>(x, i + j, {1, true}); });
            else all(0);
          });
    }
  };
  struct count_body {
    host_storage<Plan, System> const& storage;
    host_control<Plan> const& control;
    template <class Real> void operator()(std::int64_t chunk) const {
      if (control.units[storage.unit_terms_of(chunk)].frozen) return;
      auto const [begin, size] = span_of(chunk, storage.record(chunk));
      count_rows(storage.rows_of_chunk(chunk), begin, size, 0, 1);
    }
  };

  struct keep_body {
    host_storage<Plan, System> const& storage;
    bool waits;
    template <class Real> void operator()(std::int64_t chunk) const {
      auto const [begin, size] = span_of(chunk, storage.record(chunk));
      detail::keep_selection(storage.rows_of_chunk(chunk), begin, size, waits, 0, 1);
    }
  };

  struct ascend_body {
    host_storage<Plan, System> const& storage;
    entry const* groups;
    real factor;
    template <class Real> void operator()(std::int64_t chunk) const {
      bool const frozen = groups[std::size_t(storage.record(chunk).group)].frozen;
      every_packet<ascend_all<real>> const one{storage, {storage.saved(), frozen ? real(0) : factor}};
      one.template operator()<Real>(chunk);
    }
  };

  host_control<Plan> const& control_;
  host_storage<Plan, System>& storage_;
};

}  // namespace descent::detail
